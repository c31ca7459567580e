// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// watched is a resource on its way from a document to the operator.
type watched struct {
	*part
	loader *loader
	at     path
	form   *resource
	out    *dsl.Resource
	// made are the places of the named children so far.
	made map[string]path
	// kept are the objects that handlers always make so far.
	kept map[string]keeper
	// kin are all handlers of the resource, once they were asked for.
	kin []actions.Sibling
	// refused: an action is at fault, so what it declares is not known.
	refused bool
}

// resource adds resource i of a part.
func (l *loader) resource(op *dsl.Operator, p *part, i int) {
	w := &watched{part: p, loader: l, at: path("resources").Index(i), form: &p.form.Resources[i], made: map[string]path{}, kept: map[string]keeper{}}
	w.out = op.Resource(w.form.Resource, nil)
	l.places[w.out] = place{p, w.at}
	w.out.Resync = w.form.Resync
	w.out.Workers = w.form.Workers
	w.out.Cache = w.form.Cache
	w.out.ObservedGeneration = w.form.ObservedGeneration
	w.out.Keep = w.form.Keep
	for i, field := range w.form.Keep {
		w.known(w.at.Key("keep").Index(i), field)
	}
	for _, name := range w.form.Owns {
		if name != (dsl.ResourceName{}) {
			w.out.Owns(name.String())
		}
	}
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
	if w.refused {
		l.refused[w.out] = true
	}
}

// kindless checks children whose kind is worked out when their handler runs.
func (w *watched) kindless() {
	for _, made := range w.out.Makes {
		if made.Kind.Empty() && !w.Has(w.at.Key("owns")) {
			w.Fault(w.made[made.Name], "its kind is worked out, so the resource must say with owns what it may be")
		}
	}
}

// known checks a field against the schema of the resource, once that is known.
func (w *watched) known(at path, field dsl.Path) {
	if len(field) == 0 {
		return
	}
	w.out.Checks = append(w.out.Checks, func(s shape.Schemas) []error {
		return w.wrongExpression(at, check.Path(s.Self.Schema, field...)).Errors()
	})
}
