// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// customResource sets the resource's CRD from the configuration.
func (w *watched) customResource() {
	if _, err := dsl.ParseResourceName(w.form.Resource); err != nil || w.form.Schema == nil {
		return // a faulty name is reported already
	}
	if err := crd.CheckName(w.out.Name); err != nil {
		w.Fault(w.at.Key("resource"), "%v", err)
		return
	}
	given := *w.form.Schema
	for _, m := range w.form.Machine.list {
		given.Machines = append(given.Machines, m.Name)
	}
	for _, h := range w.out.Machines() { // machines declared in Go; those of the configuration come later
		given.Machines = append(given.Machines, h.Machine.Name)
	}
	given.Service = crd.ServiceOf(w.out)
	tree, faults := crd.Build(w.out.Name, &given)
	at := w.at.Key("schema")
	for _, fault := range faults {
		w.unfit(at, at, fault)
	}
	w.out.CRD = tree
	w.out.CRDFault = func(err error) error { return w.within(at, 0, 0, err.Error()) }
}

// Own returns the schemas that the configuration itself describes.
func Own(op *dsl.Operator) dsl.Knowledge {
	named, ofKind := map[dsl.ResourceName]*spec.Schema{}, map[schema.GroupVersionKind]*spec.Schema{}
	for _, r := range op.Resources() {
		if r.CRD == nil {
			continue
		}
		if kind, s, err := crd.Objects(r.CRD); err == nil { // a CRD that was made here has no error
			anyVersion := dsl.ResourceName{Resource: r.Name.Resource, Group: r.Name.Group}
			named[r.Name], named[anyVersion], ofKind[kind] = s, s, s
		}
	}
	return dsl.Knowledge{
		OfResource: func(name dsl.ResourceName) *spec.Schema { return named[name] },
		OfKind:     func(kind schema.GroupVersionKind) *spec.Schema { return ofKind[kind] },
	}
}

// checkSchemas checks an operator against the schemas that its configuration describes.
func (l *loader) checkSchemas(op *dsl.Operator) {
	faults, _ := op.CheckSchemas(op.Resources(), Own(op))
	for _, err := range faults {
		if f, ok := errors.AsType[source.Fault](err); ok {
			l.fault(f)
		}
	}
}
