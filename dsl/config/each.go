// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
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

// entries are the entries of a handler with forEach. It runs for each of them as a sub-handler.
type entries struct {
	expr.Each
	// id is the handler's id. Deletes: the handler also runs for deletions, for more than taking its children away.
	id      string
	deletes bool
	params  dsl.Params
	// options are the options of each sub-handler.
	options []dsl.Option
	// made are the names of the children of an entry; makers are the names under which the handler makes children.
	made, makers []string
}

// each compiles the entries of a handler. It returns nil without forEach, or if forEach has a fault.
func (w *watched) each(at path, h *handler) *entries {
	switch {
	case h.daemon:
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
	out := &entries{id: h.ID, deletes: slices.Contains(h.Causes, dsl.Delete), params: h.With, options: h.attempts.options()}
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
	h.item = func(s shape.Schemas) shape.Shape { return itemOf(out.Of, s) }
	return out
}

// keyOf compiles the key of an entry. An entry without a key has nil.
func (w *watched) keyOf(at path, h *handler) *expr.Template {
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
func (w *watched) tree(of path, key string, h *handler, tree any, vars []string, want *spec.Schema) *expr.Template {
	at := of.Key(key)
	compiler, err := w.loader.compiler(vars...)
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

// itemOf returns the shape of one entry, from the shape of all.
func itemOf(t *expr.Template, s shape.Schemas) shape.Shape {
	out := shape.Shape{Value: true}
	if len(t.Pieces) != 1 || t.Pieces[0].Program == nil {
		return out
	}
	switch all := check.Result(t.Pieces[0].Program, s); {
	case all == nil:
	case all.Items != nil:
		out.Schema = all.Items.Schema
	case all.AdditionalProperties != nil && len(all.Properties) == 0:
		out.Schema = all.AdditionalProperties.Schema
	}
	return out
}

// within returns the schemas of expressions within an entry, with its item, and with the children of this entry
// alone.
func (h *handler) within(s shape.Schemas) shape.Schemas {
	s.Alone = len(h.Field) > 0
	if h.item == nil {
		return s
	}
	item := h.item(s)
	s = s.With(expr.Item, item).With(expr.Value, item)
	s.Children = maps.Clone(s.Children)
	for _, name := range h.entries.names() {
		if child, known := s.Children[name]; known {
			child.List = false
			s.Children[name] = child
		}
	}
	return s
}

func (e *entries) names() []string {
	if e == nil {
		return nil
	}
	return e.made
}

// forEntries makes the code that an action has built run for each entry.
func (h *handler) forEntries(built *actions.Built) {
	e := h.entries
	fn := built.Func
	built.Func = func(_ context.Context, r *dsl.Request) error { return e.run(r, fn) }
	programs := e.Of.Programs()
	if e.Key != nil {
		programs = append(programs, e.Key.Programs()...)
	}
	reads := expr.ReadsOf(programs...)
	built.Reads = built.Reads.And(reads)
	built.NoOld = built.NoOld && reads.Only
}

// run declares a sub-handler for each entry. After all have succeeded, it takes away the children of entries that
// no longer exist.
func (e *entries) run(r *dsl.Request, fn dsl.Func) error {
	list, err := e.list(r)
	if many, is := errors.AsType[*expr.TooManyError](err); is {
		return dsl.Permanent(many)
	}
	if err != nil {
		return fmt.Errorf("working out forEach: %w", err)
	}
	made := &taken{namespace: r.Object.GetNamespace()}
	for _, one := range list {
		r.Handle(entryID(one.Key), e.one(one, fn, made), e.options...)
	}
	if e.leaves(r) {
		return nil // each entry has taken its own children away
	}
	r.Then(func(ctx context.Context, r *dsl.Request) error {
		return e.remove(ctx, r, func(c dsl.ChildObject) bool {
			return e.makes(c.Handler) && !slices.ContainsFunc(list, func(one expr.Element) bool { return one.Key == c.Key })
		})
	})
	return nil
}

// leaves reports whether the object is being deleted and the handler only has to take its children away.
func (e *entries) leaves(r *dsl.Request) bool {
	return e != nil && r.Cause == dsl.Delete && !e.deletes
}

// list returns the entries of a request. If the handler only has to take children away, it returns the entries that
// have children; the expression is not evaluated then.
func (e *entries) list(r *dsl.Request) ([]expr.Element, error) {
	if !e.leaves(r) {
		return e.Elements(func(vars map[string]any) expr.Scope {
			return expr.Scope{Subject: &r.Subject, Params: e.params, Vars: vars}
		})
	}
	all, err := r.Children.All()
	if err != nil {
		return nil, err
	}
	var out []expr.Element
	for _, found := range all {
		if e.makes(found.Handler) && !slices.ContainsFunc(out, func(one expr.Element) bool { return one.Key == found.Key }) {
			out = append(out, expr.Element{Key: found.Key})
		}
	}
	return out, nil
}

// makes reports whether the handler makes children under a name.
func (e *entries) makes(maker string) bool { return slices.Contains(e.makers, maker) }

// one returns the code for one entry.
func (e *entries) one(of expr.Element, fn dsl.Func, made *taken) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		own := *r
		own.Vars = of.Vars
		own.Children = ofEntry{r.Children, e, of.Key, made}
		own.Subject.Children = own.Children
		own.Made = slices.Clone(r.Made)
		for i := range own.Made {
			if slices.Contains(e.made, own.Made[i].Name) {
				own.Made[i].List = false
			}
		}
		defer func() { r.Step = own.Step }() // also after a panic
		return fn(ctx, &own)
	}
}

// remove takes away children that are not desired any more.
func (e *entries) remove(ctx context.Context, r *dsl.Request, unwanted func(dsl.ChildObject) bool) error {
	if len(e.makers) == 0 {
		return nil
	}
	all, err := r.Children.All()
	if err != nil {
		return fmt.Errorf("reading children: %w", err)
	}
	var failed []error
	for _, found := range all {
		kept := found.Ownership == dsl.Unowned || found.OnDelete == dsl.RetainChild
		leaving := found.OnDelete != dsl.OrphanChild && found.Object.GetDeletionTimestamp() != nil
		if unwanted(found) && !kept && !leaving {
			failed = append(failed, r.Children.Remove(ctx, found))
		}
	}
	return errors.Join(failed...)
}
