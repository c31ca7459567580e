// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"

	"gopkg.in/yaml.v3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

var _ form.Form = (*owned)(nil)

// holding says how much of each object is held, of children or of related objects.
type holding struct {
	Cache dsl.CacheProfile `yaml:"cache" default:"compact" doc:"What is held of each of these objects in memory. compact: its JSON, compressed. metadata: its metadata alone."`
	Keep  []dsl.Path       `yaml:"keep" unique:"true" doc:"For cache compact: the fields to hold, as in data.size, beside metadata, status.conditions and status.observedGeneration. What expressions read of related objects must be among them; what templates set and expressions read of children is held in any case, and spec and status of children where the engine keeps the condition Ready. Absent: all fields."`
}

// held returns it as the engine has it, and checks the fields against the schema of the objects, if it is known.
func (h *holding) held(w *watched, at path, of func(shape.Schemas) *spec.Schema) dsl.Holding {
	out := dsl.Holding{Cache: h.Cache, Keep: h.Keep}
	if len(h.Keep) > 0 {
		out.KeepAt = w.where(at.Key("keep"))
	}
	for i, field := range h.Keep {
		if len(field) == 0 {
			continue
		}
		place := at.Key("keep").Index(i)
		w.check(place, place, func(s shape.Schemas) []error {
			return expr.Faults(nil, check.Path(of(s), field...))
		})
	}
	return out
}

// owned is a resource of children: its name, or a map.
type owned struct {
	ownedOptions
	// short: the name stands alone.
	short bool
}

type ownedOptions struct {
	Resource dsl.ResourceName `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling."`
	holding
}

// ReadForm reads both forms.
func (o *owned) ReadForm(d *form.Decoder, at path, n *yaml.Node) bool {
	if o.short = n.Kind != yaml.MappingNode; o.short {
		return d.Filled(at, n, &o.Resource)
	}
	return d.Struct(at, n, &o.ownedOptions, nil)
}

// DescribeForm describes both forms.
func (o *owned) DescribeForm(d *form.Describer) *form.Schema {
	return &form.Schema{OneOf: []*form.Schema{d.Of(reflect.TypeFor[dsl.ResourceName]()), d.Struct(reflect.TypeFor[ownedOptions]())}}
}

// owns adds a resource of children.
func (w *watched) owns(at path, of *owned) {
	if of.Resource == (dsl.ResourceName{}) {
		return // its fault is reported
	}
	place := at
	if !of.short {
		place = at.Key("resource")
	}
	for name := range w.out.Owned() {
		if name.Objects() == of.Resource.Objects() && !of.short { // of names alone, the form says so
			w.Fault(place, "%s is in the list twice", of.Resource)
			return
		}
	}
	w.out.Owns(of.Resource.String())
	if !of.short {
		w.out.HoldOwned(of.Resource.String(), of.held(w, at, func(s shape.Schemas) *spec.Schema {
			if s.Kinds == nil || s.OfKind == nil {
				return nil
			}
			kind, _ := s.Kinds.Resource(of.Resource.GVR(), true) // the check of the name reports a fault
			return s.OfKind(kind.GroupVersionKind)
		}))
	}
	w.exists(place, of.Resource)
}
