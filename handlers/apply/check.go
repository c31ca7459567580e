// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// check checks the child's expressions and its object against schemas.
func (c *child) check(s shape.Schemas) []error {
	whether := s // includeWhen cannot rely on itself
	whole := s   // the limits of a rollout have no element
	if c.include != nil {
		s.Sure = slices.Concat(s.Sure, check.Sure(c.include.program))
	}
	var out []error
	if c.forEach != nil {
		out = check.Template(c.forEach, s, listOrMap())
		s.Sure = slices.Concat(s.Sure, check.Asked(c.forEach)) // without forEach's value there is no element
		s, whether = check.Each(c.forEach, s), check.Each(c.forEach, whether)
	}
	out = append(out, check.Template(c.template, s, s.Children[c.name].Schema)...)
	if c.key != nil {
		out = append(out, check.Template(c.key, s, nil)...)
	}
	out = append(out, c.checkObject(s)...)
	if c.include != nil {
		out = append(out, expr.Faults(c.include.at, check.Program(c.include.program, whether))...)
	}
	conditions := []*condition{c.ready}
	if c.rollout != nil && c.rollout.partition != nil {
		out = append(out, check.Template(c.rollout.partition, whole, wholeNumber())...)
	}
	if c.rollout != nil {
		out = append(out, check.Template(c.rollout.maxUnavailable, whole, numberOrText())...)
		conditions = append(conditions, c.rollout.ready)
	}
	s = s.With(childVar, shape.Shape{Schema: s.Children[c.name].Schema})
	for _, one := range conditions {
		if one != nil {
			out = append(out, expr.Faults(one.at, check.Program(one.program, s))...)
		}
	}
	return out
}

// listOrMap returns the schema of values that forEach accepts.
func listOrMap() *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"array", "object"}}}
}

// wholeNumber returns the schema of values that partition accepts.
func wholeNumber() *spec.Schema {
	least := 0.0
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"integer"}, Minimum: &least}}
}

// numberOrText returns the schema of values that maxUnavailable accepts.
func numberOrText() *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"integer", "string"}}}
}

// checkObject checks the object's kind and name against the kinds that exist.
func (c *child) checkObject(s shape.Schemas) (out []error) {
	if s.Kinds == nil {
		return nil
	}
	var kind shape.Kind
	if !c.kind.Empty() {
		var err error
		if kind, err = s.Kinds.Kind(c.kind); err != nil {
			out = append(out, c.placed(err))
		}
	}
	metadata := part(c.template, "metadata")
	name, namespace := part(metadata, "name"), part(metadata, "namespace")
	if name != nil {
		out = append(out, wrongName(kind, name)...)
		out = append(out, c.oneForEach(name, namespace)...)
		out = append(out, c.oneForOwners(name, namespace)...)
	}
	if metadata != nil && len(metadata.Pieces) == 0 && !kind.Empty() && !s.Kind.Empty() {
		out = append(out, c.misplaced(s.Kind, kind, metadata, namespace)...)
	}
	return append(out, c.refused(kind)...)
}

// placed adds a place to a misfit, below the object.
func (c *child) placed(err error) error {
	if misfit, is := errors.AsType[*shape.Misfit](err); is {
		misfit.Path = slices.Concat(c.template.Path, misfit.Path)
	}
	return err
}

// part returns the value of a key; nil if it is missing or the key is computed.
func part(t *expr.Template, key string) *expr.Template {
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		if e := &t.Entries[i]; len(e.Key.Pieces) == 0 && e.Key.Plain == key {
			return &e.Value
		}
	}
	return nil
}

// misfit returns a fault of a part of the template.
func misfit(t *expr.Template, message string) error {
	return &shape.Misfit{Path: t.Path, Message: message}
}

// doubt returns a warning for a part of the template.
func doubt(t *expr.Template, message string) error {
	return &shape.Misfit{Path: t.Path, Message: message, Warning: true}
}
