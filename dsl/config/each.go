// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// The keys of a handler with forEach.
const (
	forEach  = "forEach"
	entryKey = "key"
)

// entries are the compiled entries of a handler with forEach.
type entries struct {
	expr.Each
	params dsl.Params
}

// Entries computes the entries for an object.
func (e *entries) Entries(s *dsl.Subject) ([]actions.Entry, error) {
	list, err := e.Elements(func(vars map[string]any) expr.Scope {
		return expr.Scope{Subject: s, Params: e.params, Vars: vars}
	})
	if many, is := errors.AsType[*expr.TooManyError](err); is {
		return nil, dsl.Permanent(many)
	}
	if err != nil {
		return nil, fmt.Errorf("working out forEach: %w", err)
	}
	out := make([]actions.Entry, len(list))
	for i, one := range list {
		out[i] = actions.Entry(one)
	}
	return out, nil
}

// reads returns what the expressions of the entries read.
func (e *entries) reads() dsl.KnownReads {
	programs := e.Of.Programs()
	if e.Key != nil {
		programs = append(programs, e.Key.Programs()...)
	}
	return expr.ReadsOf(programs...)
}

// each compiles the entries of a handler. It returns nil without forEach, or if forEach has a fault.
func (w *watched) each(at path, h *making) *actions.Entries {
	switch {
	case h.kind == dsl.DaemonHandler:
		return nil
	case !w.Has(at.Key(forEach)) && w.Faulty(at.Key(forEach)): // forEach is mistyped
		h.vars = expr.ItemVariables()
		return nil
	case !w.Has(at.Key(forEach)):
		if place := at.Key(entryKey); w.Has(place) {
			w.FaultKey(place, "is for handlers with forEach")
		}
		return nil
	}
	out := &entries{params: h.With}
	out.Most = dsl.MostSubHandlers
	h.vars = expr.ItemVariables()
	if out.Key = w.keyOf(at, h); h.ForEach.Value == nil {
		return nil // it has a fault
	}
	if out.Of = w.tree(at, forEach, h, h.ForEach.Value, nil, listOrMap); out.Of == nil {
		return nil
	}
	if _, isText := h.ForEach.Value.(string); isText && len(out.Of.Programs()) == 0 {
		w.Fault(at.Key(forEach), "%s", form.WantItems)
		return nil
	}
	h.sure = append(h.sure, check.Asked(out.Of)...)
	h.each = out.Of
	return &actions.Entries{ID: h.ID, Of: out, Options: h.options(), Deletes: slices.Contains(h.Causes, dsl.Delete)}
}

// keyOf compiles the key of an entry. An entry without a key has nil.
func (w *watched) keyOf(at path, h *making) *expr.Template {
	if h.Key == "" {
		return nil
	}
	out := w.tree(at, entryKey, h, string(h.Key), h.vars, nil)
	if out != nil && len(out.Programs()) == 0 {
		w.Fault(at.Key(entryKey), "is the same for every item: want an expression as in ${item.name}")
	}
	return out
}

// tree compiles the value of a key of a handler; nil if it has a fault. It is checked again when schemas are known.
func (w *watched) tree(of path, key string, h *making, tree any, vars []string, want *spec.Schema) *expr.Template {
	at := of.Key(key)
	compiler, err := w.compiler(vars...)
	if err != nil {
		w.Fault(at, "%v", err)
		return nil
	}
	t, err := compiler.Template(tree, key)
	if err != nil {
		w.unfit(of, at, err)
		return nil
	}
	sure := slices.Clone(h.sure)
	w.check(of, at, func(s shape.Schemas) []error {
		s.Without, s.Sure, s.Params = without(h), slices.Concat(sure, w.booked(h)), given(h)
		if vars != nil {
			s = h.within(s)
		}
		return check.Template(t, s, want)
	})
	return t
}

// listOrMap is the schema of values that forEach accepts.
var listOrMap = &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"array", "object"}}}

// within returns the schemas of expressions within an entry, with its variables, and with the children of this entry
// alone.
func (h *making) within(s shape.Schemas) shape.Schemas {
	s.Alone = len(h.Field) > 0
	if h.kind == dsl.AdmissionHandler {
		s.Self.Kept = nil // requests have whole objects
		s = s.With(expr.Request, requestShape(s))
	}
	if h.each == nil {
		return s
	}
	s = check.Each(h.each, s)
	s.Children = maps.Clone(s.Children)
	for _, name := range h.entries.Children {
		if child, known := s.Children[name]; known {
			child.List = false
			s.Children[name] = child
		}
	}
	return s
}

// forEntries makes the code that an action has built run for each entry.
func (w *watched) forEntries(at path, h *making, built *actions.Built) {
	built.Func = w.composer(at.Key(forEach)).Each(h.entries, built.Func)
	reads := h.entries.Of.(*entries).reads()
	built.Reads = built.Reads.And(reads)
	built.NoOld = built.NoOld && reads.Only
}

// composer returns the registry's composer of handlers. Without one, it notes a fault.
func (c *compiling) composer(at path) actions.Composer {
	if c := c.loader.registry.Composer(); c != nil {
		return c
	}
	c.Fault(at, "this program cannot run it: its registry has no composer (want one from handlers.Standard)")
	return noComposer{}
}

// noComposer stands for a composer where a fault has been noted.
type noComposer struct{}

func (noComposer) Step(s actions.Step) dsl.Func                    { return s.Func }
func (noComposer) All(code []dsl.Func) dsl.Func                    { return code[0] }
func (noComposer) Each(_ *actions.Entries, code dsl.Func) dsl.Func { return code }
