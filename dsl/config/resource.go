// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// watched is a resource on its way from a document to the operator.
type watched struct {
	*part
	loader *loader
	at     path
	form   *resource
	out    *dsl.Resource
	// ids are the places of the handlers so far.
	ids map[string]path
	// made are the places of the named children so far.
	made map[string]path
	// kept are the objects that handlers always make so far.
	kept map[string]keeper
	// kin are all handlers of the resource, once they were asked for.
	kin []dsl.Sibling
}

// declaration is a resource's name as it was written, and where.
type declaration struct {
	name dsl.ResourceName
	at   string
}

// resource adds resource i of a part. Declared are the resources so far, by their objects.
func (l *loader) resource(op *dsl.Operator, p *part, i int, declared map[schema.GroupResource]declaration) {
	w := &watched{part: p, loader: l, at: path("resources").Index(i), form: &p.form.Resources[i], ids: map[string]path{}, made: map[string]path{}, kept: map[string]keeper{}}
	w.out = op.Resource(w.form.Resource, nil)
	if at := w.at.Key("resource"); w.form.Resource != "" {
		name, err := dsl.ParseResourceName(w.form.Resource)
		first, twice := declared[name.Objects()]
		switch {
		case err != nil:
			p.Fault(at, "%v", err)
		case twice && name == first.name:
			p.Fault(at, "%s is declared twice (first at %s)", name, first.at)
		case twice:
			p.Fault(at, "%s has the same objects as %s at %s: put the handlers of both under one", name, first.name, first.at)
		default:
			declared[name.Objects()] = declaration{name, p.where(at)}
		}
	}
	w.out.Resync = w.form.Resync
	w.out.Workers = w.form.Workers
	w.out.Cache = dsl.CacheProfile(w.form.Cache)
	w.out.ObservedGeneration = w.form.ObservedGeneration
	w.keep()
	w.owns()
	if w.form.Selector != nil {
		w.selector(w.form.Selector)
	}
	w.related()
	w.customResource()
	for i := range w.form.Handlers {
		w.handler(w.at.Key("handlers").Index(i), &w.form.Handlers[i])
	}
	for i := range w.form.Schedule {
		w.scheduled(w.at.Key("schedule").Index(i), &w.form.Schedule[i])
	}
	w.kindless()
	w.unmet()
	w.observed()
}

// kindless checks children whose kind is worked out when their handler runs.
func (w *watched) kindless() {
	for _, made := range w.out.Made() {
		if made.Kind.Empty() && !w.Has(w.at.Key("owns")) {
			w.Fault(w.made[made.Name], "its kind is worked out, so the resource must say with owns what it may be")
		}
	}
}

func (w *watched) keep() {
	at := w.at.Key("keep")
	if w.Has(at) && w.form.Cache != "" && w.out.Cache != dsl.CacheCompact {
		w.FaultKey(at, "is only for cache %s", dsl.CacheCompact)
	}
	for i, text := range w.form.Keep {
		if field := w.path(at.Index(i), text); field != nil {
			w.out.Keep = append(w.out.Keep, field)
		}
	}
}

// path reads a field path, nil when there is none or it is at fault.
func (w *watched) path(at path, text string) dsl.Path {
	if text == "" {
		return nil
	}
	field, err := dsl.ParsePath(text)
	if err != nil {
		w.Fault(at, "%v", err)
		return nil
	}
	w.out.Checks(func(s dsl.Schemas) []error {
		return w.wrongExpression(at, expr.CheckPath(s.Self.Schema, field...)).errors()
	})
	return field
}

func (w *watched) owns() {
	at := w.at.Key("owns")
	for i, name := range w.form.Owns {
		if name == "" {
			continue
		}
		if _, err := dsl.ParseResourceName(name); err != nil {
			w.Fault(at.Index(i), "%v", err)
			continue
		}
		w.out.Owns(name)
	}
}

// observed checks that the generation tells all that the handlers want to know.
func (w *watched) observed() {
	if !w.form.ObservedGeneration {
		return
	}
	for _, h := range w.out.Handlers() {
		if h.LooksPast() {
			w.FaultKey(w.at.Key("observedGeneration"), "cannot tell what handler %s has seen: it needs field: spec and old: false", h.ID)
		}
	}
}
