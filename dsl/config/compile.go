// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// compile makes the operator and notes what the form alone cannot tell. With faults the operator
// is not whole.
func (l *loader) compile() *dsl.Operator {
	op := dsl.New("")
	l.metadata(op)
	if p := l.only("scope"); p != nil {
		op.Scope = p.scope(p.form.Scope)
	}
	if p := l.only("settings"); p != nil {
		op.Settings = p.settings(p.form.Settings)
	}
	declared := map[schema.GroupResource]declaration{}
	found := false
	for _, p := range l.parts {
		found = found || p.Has("resources")
		for i := range p.form.Resources {
			l.resource(op, p, i, declared)
		}
	}
	if !found && !l.partial {
		l.parts[0].Fault("", "resources is required")
	}
	return op
}

// only returns the part that has a value at the path. Others that have one too are at fault.
func (l *loader) only(at path) *part {
	var first *part
	for _, p := range l.parts {
		switch {
		case !p.Has(at):
		case first == nil:
			first = p
		default:
			p.FaultKey(at, "must be in one document only (it is at %s already)", first.where(at))
		}
	}
	return first
}

func (l *loader) metadata(op *dsl.Operator) {
	const at = path("metadata.name")
	var first *part
	for _, p := range l.parts {
		name := p.form.Metadata.Name
		switch {
		case name == "":
			continue
		case first == nil:
			first = p
			if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
				p.Fault(at, "want a DNS label: %s", faults[0])
			}
			op.Name = name
		case name != op.Name:
			p.Fault(at, "%s is another operator than %s at %s; load them apart", form.Quoted(name), form.Quoted(op.Name), first.where(at))
		}
	}
	const domain = path("metadata.domain")
	if p := l.only(domain); p != nil {
		op.Domain = p.form.Metadata.Domain
		if faults := validation.IsDNS1123Subdomain(op.Prefix()); op.Domain != "" && len(faults) > 0 {
			p.Fault(domain, "want a DNS name: %s", faults[0])
		}
	}
}

func (p *part) scope(s *scope) dsl.Scope {
	if s == nil {
		return dsl.Scope{}
	}
	const at = path("scope.namespaces")
	for i, pattern := range s.Namespaces {
		p.namespaces(at.Index(i), pattern)
	}
	return dsl.Scope{Namespaces: s.Namespaces}
}

// namespaces checks a namespace or a glob of some.
func (p *part) namespaces(at path, pattern string) {
	if pattern == "" {
		return // that it is required is told
	}
	if fault := NamespaceFault(pattern); fault != "" {
		p.Fault(at, "%s", fault)
	}
}
