// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Schema returns the JSON Schema (draft 2020-12) of the form with the registry's actions, for editors. It accepts
// every configuration that [Load] accepts. Rules that JSON Schema cannot express are checked by Load alone.
func Schema(registry *actions.Registry) ([]byte, error) {
	return Describe(registry).Document("operator.v1alpha1.json", "Handwerk operator")
}

// Describe returns the schema of the form with the registry's actions, with all that an [form.Outline] of it shows.
func Describe(registry *actions.Registry) *form.Schema {
	out := form.Describe(reflect.TypeFor[document](), registry)
	resource := out.Properties["resources"].Items
	// What people look for stands first, and what has parts of it behind it.
	out.Order = slices.Concat([]string{"resources"}, but(out.Order, "resources"))
	resource.Order = append(but(resource.Order, "machine"), "machine")
	lists := []handlerList{
		{"handlers", resource}, {"daemons", resource}, {"schedule", resource},
		{"startup", out}, {"cleanup", out}, {"health", out}, {"ready", out},
	}
	for _, one := range lists {
		for name, field := range one.handler().Properties {
			field.In = inLists(lists, name)
		}
	}
	return out
}

// PartSchema returns the JSON Schema of a part's file, as Schema does for an operator.
func PartSchema(registry *actions.Registry) ([]byte, error) {
	return DescribePart(registry).Document("part.v1alpha1.json", "Handwerk part")
}

// DescribePart returns the schema of a part's file, as Describe does for an operator.
func DescribePart(registry *actions.Registry) *form.Schema {
	return form.Describe(reflect.TypeFor[partDocument](), registry)
}

// but returns the names without one.
func but(names []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == one })
}

// handlerList is a list of handlers of a kind.
type handlerList struct {
	name string
	// of is the form of the map that has the list.
	of *form.Schema
}

// handler returns the form of the list's elements.
func (l handlerList) handler() *form.Schema { return l.of.Properties[l.name].Items }

// inLists returns the names of the lists whose handlers may have a field.
func inLists(lists []handlerList, field string) (out []string) {
	for _, one := range lists {
		if one.handler().Properties[field] != nil {
			out = append(out, one.name)
		}
	}
	return out
}

// withAction describes a struct that has fields and exactly one action, or steps if it has such a field. It
// includes the actions of the registry for which has is true.
func withAction(d *form.Describer, t reflect.Type, has func(actions.Action) bool) *form.Schema {
	out := d.Struct(t)
	if _, known := out.Properties[steps]; known {
		out.OneOf = append(out.OneOf, &form.Schema{Required: []string{steps}})
	}
	registry := d.With.(*actions.Registry)
	out.Order = slices.Concat(registry.Actions(), []string{useKey}, out.Order)
	out.Properties[useKey] = (&use{}).DescribeForm(d)
	out.Properties[useKey].Description = useDoc
	out.OneOf = append(out.OneOf, &form.Schema{Required: []string{useKey}})
	for _, name := range registry.Actions() {
		action, _ := registry.LookupAction(name)
		if !has(action) {
			continue
		}
		property := d.Filled(reflect.TypeOf(action.Config()).Elem())
		property.Description = action.Doc
		out.Properties[name] = property
		out.OneOf = append(out.OneOf, &form.Schema{Required: []string{name}})
	}
	return out
}

func anyAction(actions.Action) bool { return true }

// wholeAction reports whether schedules may have the action.
func wholeAction(a actions.Action) bool { return !a.OneObject }
