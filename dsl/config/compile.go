// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// compile makes the operator and notes what the form alone cannot tell. With faults the operator
// is not whole.
func (l *loader) compile() *dsl.Operator {
	op := dsl.New("")
	l.metadata(op)
	if p := l.only("scope"); p != nil && p.form.Scope != nil {
		op.Scope = dsl.Scope(*p.form.Scope)
	}
	if p := l.only("settings"); p != nil && p.form.Settings != nil {
		s := p.form.Settings
		op.Settings = dsl.Settings{GracePeriod: s.GracePeriod, QPS: s.QPS, Burst: s.Burst, Events: s.Events}
		if s.LeaderElection != nil {
			op.Settings.LeaderElection = dsl.LeaderElection(*s.LeaderElection)
		}
	}
	for _, p := range l.parts {
		for i := range p.form.Resources {
			l.resource(op, p, i)
		}
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
			op.Name = name
		case name != op.Name:
			p.Fault(at, "%s is another operator than %s at %s; load them apart", form.Quoted(name), form.Quoted(op.Name), first.where(at))
		}
	}
	if p := l.only("metadata.domain"); p != nil {
		op.Domain = p.form.Metadata.Domain
	}
}
