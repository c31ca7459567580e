// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
)

// customResource gives the resource the CRD that the configuration describes.
func (w *watched) customResource() {
	s := w.form.Schema
	if s == nil || w.form.Resource == "" {
		return
	}
	if _, err := dsl.ParseResourceName(w.form.Resource); err != nil {
		return // that is told already
	}
	if err := crd.CheckName(w.out.Name); err != nil {
		w.Fault(w.at.Key("resource"), "%v", err)
		return
	}
	given := *s
	given.ObservedGeneration = w.form.ObservedGeneration
	tree, faults := crd.Build(w.out.Name, &given)
	var errs []error
	for _, fault := range faults {
		fault.Path = append([]string{"schema"}, fault.Path...)
		errs = append(errs, fault)
	}
	w.misfit(w.at, "schema", errors.Join(errs...))
	w.out.CRD = tree
	w.out.CRDFault = func(err error) error { return w.within(w.at.Key("schema"), 0, 0, err.Error()) }
}

// ownSchemas are the schemas that a configuration itself describes.
type ownSchemas []ownSchema

type ownSchema struct {
	name   dsl.ResourceName
	kind   schema.GroupVersionKind
	schema *spec.Schema
}

// schemasOf returns the schemas of an operator's own resources.
func schemasOf(op *dsl.Operator) ownSchemas {
	var out ownSchemas
	for _, r := range op.Resources() {
		if r.CRD == nil {
			continue
		}
		// A CRD that was made here can be read.
		if kind, s, err := crd.Objects(r.CRD); err == nil {
			out = append(out, ownSchema{r.Name, kind, s})
		}
	}
	return out
}

// ofResource returns the resource's schema; without a version, that of the only one there is.
func (s ownSchemas) ofResource(name dsl.ResourceName) *spec.Schema {
	for _, own := range s {
		if name.Resource == own.name.Resource && name.Group == own.name.Group && (name.Version == "" || name.Version == own.name.Version) {
			return own.schema
		}
	}
	return nil
}

// ofKind returns the kind's schema.
func (s ownSchemas) ofKind(kind schema.GroupVersionKind) *spec.Schema {
	for _, own := range s {
		if kind == own.kind {
			return own.schema
		}
	}
	return nil
}
