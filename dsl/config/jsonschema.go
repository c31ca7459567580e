// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Schema returns the JSON Schema (draft 2020-12) of the form with the registry's actions, for editors. It accepts
// every configuration that [Load] accepts. Rules that JSON Schema cannot express are checked by Load alone.
func Schema(registry *actions.Registry) ([]byte, error) {
	return form.Describe(reflect.TypeFor[document](), registry).Document("operator.v1alpha1.json", "Handwerk operator")
}

// Reference returns tables in Markdown: one of the causes, and one for each map of the form, with its fields and
// its place. They include the registry's actions.
func Reference(registry *actions.Registry) string {
	var out strings.Builder
	out.WriteString("\n### The causes\n\n| cause | the handler runs when | in `reconcile` |\n|---|---|---|\n")
	for _, c := range dsl.Causes() {
		in := "no"
		if slices.Contains(dsl.ReconcileCauses(), c) {
			in = "yes"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", c, c.Doc(), in)
	}
	form.Reference(&out, "", form.Describe(reflect.TypeFor[document](), registry))
	return out.String()
}

// withAction describes a struct that has fields and exactly one action, or steps if it has such a field. It
// includes the actions of the registry for which has is true.
func withAction(d *form.Describer, t reflect.Type, has func(actions.Action) bool) *form.Schema {
	out := d.Struct(t)
	if _, known := out.Properties[steps]; known {
		out.OneOf = append(out.OneOf, &form.Schema{Required: []string{steps}})
	}
	registry := d.With.(*actions.Registry)
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
