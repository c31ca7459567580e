// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// setAction is the action that sets fields of an object.
const setAction = "set"

// changes are the fields that a rule sets: the configuration of the action set, and the same as a tree, for policies.
type changes struct {
	config any
	tree   map[string]any
}

// ReadForm reads the configuration of the action, without fields that are not stored together with the object.
func (c *changes) ReadForm(d *form.Decoder, at path, n *yaml.Node) bool {
	for _, key := range []string{"status", "conditions"} {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				d.FaultAt(n.Content[i], at.Key(key), "is not stored with the object, so a rule about requests cannot set it")
				return false
			}
		}
	}
	in := d.With.(*input)
	if _, found := in.registry.LookupAction(setAction); !found {
		d.FaultAt(n, at, "this program has no action %s", setAction)
		return false
	}
	c.config = in.config(setAction)
	return d.Filled(at, n, c.config) && n.Decode(&c.tree) == nil
}

// DescribeForm describes the configuration.
func (*changes) DescribeForm(d *form.Describer) *form.Schema {
	action, found := d.With.(*actions.Registry).LookupAction(setAction)
	if !found {
		return d.Of(reflect.TypeFor[map[string]any]())
	}
	out := d.Filled(reflect.TypeOf(action.Config()).Elem())
	for _, key := range []string{"status", "conditions"} {
		delete(out.Properties, key)
	}
	return out
}

// mutation adds a rule that changes objects.
func (w *watched) mutation(at path, m *mutationRule) {
	r := w.ruling(at, &m.admission)
	before := r.filter()
	r.out.Admission.Mutates = true
	nothing := func(context.Context, *dsl.AdmissionRequest) error { return nil }
	if m.Call != nil {
		if m.Set != nil {
			r.FaultKey(at.Key("set"), "a rule has one of set and call")
		}
		r.add(r.called(m.Call))
		return
	}
	if m.Set == nil || m.Set.config == nil {
		r.add(nothing) // the fault is reported
		return
	}
	h := &making{kind: dsl.AdmissionHandler, handler: &handler{ID: m.ID, doing: doing{action: setAction, config: m.Set.config}}, vars: []string{expr.Request}, lacks: r.without()}
	built := w.single(at, h)
	if built == nil {
		w.loader.refused[w.out] = true
		r.add(nothing)
		return
	}
	r.changes(m.Set.tree, before)
	r.add(func(ctx context.Context, of *dsl.AdmissionRequest) error {
		err := built.Func(ctx, &dsl.Request{Subject: of.Subject, Patch: of.Patch})
		return dsl.Undecided(errors.Join(err, of.Patch.Err())) // as if an expression of a policy fails
	})
}

// changes translates the fields that a rule sets. Before is a condition on all of them, or empty.
func (r *ruling) changes(tree map[string]any, before string) {
	compiler, err := r.compiler(expr.Request)
	if err != nil {
		return // the faults of expressions say why there is no compiler
	}
	gates, _ := tree["when"].(map[string]any)
	var entries []expr.PolicyEntry
	for _, key := range []string{"labels", "annotations", "spec"} {
		for _, path := range leaves(tree[key], dsl.Path{key}) {
			value, _ := path.In(tree)
			template, err := compiler.Template(value)
			if err != nil {
				return // the action reports it
			}
			all := append(r.gates(compiler, path, gates), before)
			all = slices.DeleteFunc(all, func(text string) bool { return text == "" })
			entries = append(entries, expr.PolicyEntry{Path: stored(path), Value: template, Text: key != "spec", When: strings.Join(all, " && ")})
		}
	}
	if r.policy.Variables, r.policy.Changes, err = expr.PolicyChanges(entries, r.policyVariables()); err != nil && r.hooked == nil {
		r.hooked = err
	}
}

// leaves returns the paths of the values that are set: each value that is not a map, and each empty map.
func leaves(value any, at dsl.Path) (out []dsl.Path) {
	tree, isMap := value.(map[string]any)
	switch {
	case isMap && len(tree) > 0:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			out = append(out, leaves(tree[key], append(slices.Clone(at), key))...)
		}
	case len(at) > 1:
		out = append(out, at)
	}
	return out
}

// stored returns the path in an object of a value in the configuration.
func stored(path dsl.Path) dsl.Path {
	if path[0] == "spec" {
		return path
	}
	return dsl.Path{"metadata", path[0], path[1]}
}

// gates returns the conditions on an entry, as policies have them.
func (r *ruling) gates(compiler *expr.Compiler, named dsl.Path, gates map[string]any) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		path, err := dsl.ParsePath(name)
		if err != nil || !path.Leads(named) {
			continue
		}
		if program, err := compiler.Predicate(fmt.Sprint(gates[name])); err == nil {
			out = append(out, "("+r.translated(program)+")")
		}
	}
	return out
}
