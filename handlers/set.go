// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// setConfig is the configuration of set.
type setConfig struct {
	Status      map[string]any `yaml:"status" doc:"Fields of the status; values may have ${…}. A field is removed if its expression gives no value, or misses one in the status, a child or another object."`
	Conditions  []setCondition `yaml:"conditions" doc:"Conditions in status.conditions. Their times and generations are kept by the API conventions."`
	Labels      texts          `yaml:"labels" doc:"Labels of the object; null removes one."`
	Annotations texts          `yaml:"annotations" doc:"Annotations of the object; null removes one."`
	Spec        map[string]any `yaml:"spec" doc:"Fields of the spec; null removes one."`
	When        whens          `yaml:"when" min:"1" doc:"Expressions by the entry that each is about, as in status.url, labels or annotations[\"example.com/note\"]. While one is false, the entry, with all below it, stays as it is. Conditions have their own. Variables as in the handler's."`

	strayed bool // an unknown key may be a mistyped field
}

// ReadForm reads the fields. An empty map is reported later.
func (c *setConfig) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Struct(at, n, c, &form.Others{Strayed: func() { c.strayed = true }})
}

// DescribeForm describes a map that is not empty.
func (c *setConfig) DescribeForm(d *form.Describer) *form.Schema {
	out := d.Struct(reflect.TypeFor[setConfig]())
	out.MinProperties = 1
	return out
}

// whens are expressions by the path of an entry.
type whens map[string]form.Predicate

// texts are texts by name; null removes a text.
type texts map[string]any

// ReadForm reads the texts. Invalid labels and annotations are reported later.
func (t *texts) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Value(at, n, (*map[string]any)(t))
}

// DescribeForm describes text and null.
func (t *texts) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "map of text or null", Type: "object", AdditionalProperties: &form.Schema{OneOf: []*form.Schema{{Type: "string"}, {Type: "null"}}}}
}

// setCondition is one condition.
type setCondition struct {
	Type    string         `yaml:"type" required:"true" doc:"The condition's type, one CamelCase word, as in Ready."`
	Status  state          `yaml:"status" required:"true" doc:"true, false, or the text True, False or Unknown; mostly an expression. If it finds a missing value, Unknown."`
	Reason  string         `yaml:"reason" doc:"One CamelCase word for programs. Default: the reason of the first object for which ready() in the status is false; else the condition's type if it is true, and the type with Not before it if it is not."`
	Message string         `yaml:"message" doc:"A sentence for people. Default: why ready() is false for the first object in the status for which it is."`
	When    form.Predicate `yaml:"when" doc:"While it is false, the condition stays as it is. Variables as in the handler's. Absent: the condition is always set."`
}

// state is the status of a condition.
type state struct{ value any }

// ReadForm reads a value of any kind. Invalid values are reported later.
func (s *state) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Value(at, n, &s.value)
}

// DescribeForm describes valid values.
func (s *state) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "true, false, Unknown or ${…}", OneOf: []*form.Schema{{Type: "boolean"}, {Type: "string", Pattern: `^(true|false|True|False|Unknown)$|\$\{`, PatternErrorMessage: "want true, false, True, False or Unknown, or an expression"}}}
}

// set writes computed values to the object itself.
func set(cel compilerOf) actions.Action {
	return actions.Action{
		Name:      "set",
		Doc:       "Set fields of the object itself: status, conditions, labels, annotations, spec.",
		OneObject: true,
		Config:    func() any { return new(setConfig) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			return buildSet(cel, b, config.(*setConfig))
		},
	}
}

// setter is a compiled set.
type setter struct {
	*writer
	status, spec, labels, annotations []field
	conditions                        []condition
	gates                             []*gate
	strict                            bool // a missing value is an error, as in an admission policy
}

// field is one field to set. It stays as it is while one of its gates is closed.
type field struct {
	path  dsl.Path
	value *expr.Template
	gates []*gate
}

// condition is a condition to set. It stays as it is while when, if set, is false.
type condition struct {
	kind                    string
	status, reason, message *expr.Template
	when                    *expr.Program
}

func buildSet(cel compilerOf, b actions.Build, config *setConfig) (actions.Built, error) {
	w, err := newWriter(cel, b)
	if err != nil {
		return actions.Built{}, err
	}
	w.unsetStatus = true // a missing value of the status removes a field
	s := &setter{writer: w, strict: b.Admission}
	if !config.strayed && len(config.Status)+len(config.Spec)+len(config.Labels)+len(config.Annotations)+len(config.Conditions) == 0 {
		if s.fault([]string{"set"}, "must not be empty"); len(config.When) > 0 {
			s.faults = []error{&shape.Misfit{Path: []string{"set", "when"}, Key: true, Message: "is about entries of set, and there is none"}}
		}
	}
	s.status = s.fields(config.Status, nil, "set", "status")
	s.spec = s.fields(config.Spec, dsl.Path{"spec"}, "set", "spec")
	s.labels = s.texts(config.Labels, "set", "labels")
	s.annotations = s.texts(config.Annotations, "set", "annotations")
	for _, name := range []string{"conditions", "observedGeneration"} {
		if _, there := config.Status[name]; there {
			s.fault([]string{"set", "status", name}, "is kept by the engine (conditions stand under set.conditions; observedGeneration is set if the schema has it)")
		}
	}
	w.unset = true // a missing value makes a condition Unknown
	seen := map[string]bool{}
	for i, c := range config.Conditions {
		at := []string{"set", "conditions", fmt.Sprint(i)}
		if seen[c.Type] && c.Type != "" {
			s.fault(append(at, "type"), "the condition %s is set twice", c.Type)
		}
		seen[c.Type] = true
		s.condition(at, c)
	}
	s.gate(config.When)
	if len(config.Conditions) > 0 {
		s.checks = append(s.checks, holdsConditions)
	}
	if len(config.Status)+len(config.Conditions) > 0 {
		s.needs = append(s.needs, dsl.MustParseNeed("patch", "self/status"))
	}
	if len(config.Spec)+len(config.Labels)+len(config.Annotations) > 0 {
		s.needs = append(s.needs, dsl.MustParseNeed("patch", "self"))
	}
	if err := errors.Join(s.faults...); err != nil {
		return actions.Built{}, err
	}
	s.checks = append(s.checks, s.leftOut)
	s.growing(b)
	built, kept := s.built(s.run), s.kept()
	built.Reads = s.reads.And(dsl.KnownReads{Paths: kept, Only: true, Complete: true})
	built.Sets = append(kept, s.reported()...)
	for _, c := range s.conditions {
		built.Conditions = append(built.Conditions, c.kind)
	}
	built.Asks, built.Leaves = s.asks, s.leaves
	return built, nil
}

// leftOut reports fields that the cache of the objects does not hold.
func (s *setter) leftOut(schemas shape.Schemas) (out []error) {
	kept := schemas.Self.Kept
	if kept == nil {
		return nil
	}
	for _, path := range slices.Concat(s.kept(), s.reported()) {
		place := append([]string{"set"}, path...)
		if slices.Equal(path, dsl.Path{"status", "conditions"}) {
			place = []string{"set", "conditions"}
		}
		if lacks, _ := kept.Lacks(path); lacks {
			out = append(out, &shape.Misfit{Path: place, Key: true, Message: kept.Leaves(path.String())})
		}
	}
	return out
}

// kept returns the fields outside of status. People may change them, and then they are set again.
func (s *setter) kept() (out []dsl.Path) {
	for _, f := range s.spec {
		out = append(out, f.path)
	}
	for name, list := range map[string][]field{"labels": s.labels, "annotations": s.annotations} {
		for _, f := range list {
			out = append(out, dsl.Path{"metadata", name, f.path[0]})
		}
	}
	return out
}

// reported returns the fields of status.
func (s *setter) reported() (out []dsl.Path) {
	for _, f := range s.status {
		out = append(out, append(dsl.Path{"status"}, f.path...))
	}
	if len(s.conditions) == 0 {
		return out
	}
	return append(out, dsl.Path{"status", "conditions"})
}

// fields compiles a tree: every value that is not a map is a separate field.
func (s *setter) fields(tree map[string]any, below dsl.Path, at ...string) []field {
	if len(tree) == 0 {
		return nil
	}
	part := func(schemas shape.Schemas) *spec.Schema { return property(schemas.Self.Schema, at[1]) }
	s.keys(tree, at)
	if s.stored(tree, dsl.Path{at[1]}, part, at...) == nil { // checked as a whole, rendered by field
		return nil
	}
	var out []field
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		path := append(slices.Clone(below), key)
		if branch, isMap := tree[key].(map[string]any); isMap && len(branch) > 0 {
			out = append(out, s.branch(branch, path, append(slices.Clone(at), key))...)
			continue
		}
		out = append(out, s.field(tree[key], path, append(slices.Clone(at), key)))
	}
	return out
}

// keys reports keys with expressions: the set fields must be known to remove them later.
func (s *setter) keys(tree map[string]any, at []string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		below := append(slices.Clone(at), key)
		if strings.Contains(key, "${") {
			s.fault(below, "a key cannot have ${…} here")
		}
		if deeper, isMap := tree[key].(map[string]any); isMap {
			s.keys(deeper, below)
		}
	}
}

func (s *setter) branch(tree map[string]any, below dsl.Path, at []string) []field {
	var out []field
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		path, place := append(slices.Clone(below), key), append(slices.Clone(at), key)
		if deeper, isMap := tree[key].(map[string]any); isMap && len(deeper) > 0 {
			out = append(out, s.branch(deeper, path, place)...)
			continue
		}
		out = append(out, s.field(tree[key], path, place))
	}
	return out
}

// field compiles one value. Its faults and checks belong to the whole tree.
func (s *setter) field(value any, path dsl.Path, at []string) field {
	t, err := s.compiler.Generating().Template(value, at...)
	if err != nil {
		s.faults = append(s.faults, err)
	}
	return field{path: path, value: t}
}

// texts compiles labels or annotations.
func (s *setter) texts(tree map[string]any, at ...string) []field {
	s.keys(tree, at)
	var out []field
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		place := append(slices.Clone(at), key)
		name := key
		if at[1] == "annotations" {
			name = strings.ToLower(key) // as the API server does
		}
		if wrong := validation.IsQualifiedName(name); len(wrong) > 0 && !strings.Contains(key, "${") {
			s.fault(place, "is no key: %s", wrong[0])
		}
		switch tree[key].(type) {
		case string, nil:
		default:
			s.fault(place, "want text, found %v (put it in quotes)", tree[key])
			continue
		}
		if text, _ := tree[key].(string); at[1] == "labels" && !strings.Contains(text, "${") {
			if wrong := validation.IsValidLabelValue(text); len(wrong) > 0 {
				s.fault(place, "is no value of a label: %s", wrong[0])
			}
		}
		if t := s.stored(tree[key], dsl.Path{"metadata", at[1], key}, nil, place...); t != nil {
			out = append(out, field{path: dsl.Path{key}, value: t})
		}
	}
	return out
}

// run sets all fields. If a field cannot be computed, the others are set and the handler fails.
func (s *setter) run(_ context.Context, r *dsl.Request) error {
	scope := s.objectScope(r.Subject)
	closed, faults := s.closed(scope)
	each := func(list []field, put func(path dsl.Path, value any)) {
		for _, f := range list {
			if slices.ContainsFunc(f.gates, func(g *gate) bool { return closed[g] }) {
				continue
			}
			value, err := f.value.Render(scope)
			switch {
			case !s.strict && errors.Is(err, expr.ErrMissing) && !errors.Is(err, expr.ErrMissingOwn), err == nil && value == expr.None:
				put(f.path, nil)
			case errors.Is(err, expr.ErrTooLarge) && errors.Is(errors.Join(faults...), expr.ErrTooLarge): // one such error is enough
			case err != nil:
				faults = append(faults, err)
			default:
				put(f.path, value)
			}
		}
	}
	each(s.status, func(path dsl.Path, value any) {
		has, _ := append(dsl.Path{"status"}, path...).In(r.Object.Object)
		r.Patch.SetStatus(path.String(), instead(value, has))
	})
	each(s.spec, func(path dsl.Path, value any) {
		has, _ := path.In(r.Object.Object)
		r.Patch.Set(path.String(), instead(value, has))
	})
	texts := func(list []field, what string) {
		each(list, func(path dsl.Path, value any) {
			if err := setText(r, what, path[0], value); err != nil {
				faults = append(faults, err)
			}
		})
	}
	texts(s.labels, "labels")
	texts(s.annotations, "annotations")
	for _, c := range s.conditions {
		if err := c.set(r.Patch, scope); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// instead returns the merge patch that replaces a value: it removes the keys that the new value lacks, which a
// plain merge patch would keep.
func instead(value, has any) any {
	wanted, isMap := value.(map[string]any)
	there, both := has.(map[string]any)
	if !isMap || !both {
		return value
	}
	out := maps.Clone(wanted)
	for key, below := range there {
		if above, stays := wanted[key]; stays {
			out[key] = instead(above, below)
		} else {
			out[key] = nil
		}
	}
	return out
}
