// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/ledger"
)

// rules are what a resource's handlers ask for, worked out once: what is kept on its objects and
// whether they need the finalizer.
type rules struct {
	// readers are the handlers that run for objects, as books know them, timers those of them that run by
	// time.
	readers, timers []book.Reader
	// handlers are those of the readers.
	handlers []*dsl.Handler
	// ledger is what books of objects are about, schedules what those are about of handlers that run for the resource
	// as a whole.
	ledger, schedules ledger.Rules
	// relates are the handlers that run for related objects.
	relates []*dsl.Handler
	// all is the view of all of an object.
	all book.View
	// stores: what was handled is kept, because some handler depends on it and is not level-triggered.
	stores bool
	// deletes: there are handlers that want to hear of deletions.
	deletes bool
	// events: there are handlers that hear of every event.
	events bool
	// finalizes: some delete handler holds its object.
	finalizes bool
}

func newRules(op *dsl.Operator, r *dsl.Resource) rules {
	out := rules{}
	own := book.Own{Annotations: []string{op.StateAnnotation(), op.ChildrenAnnotation()}, Finalizer: op.Finalizer()}
	out.all = book.NewView(dsl.View{Beside: []dsl.Path{{"metadata"}, {"status"}}}, own)
	secret := r.Name.Resource == "secrets" && r.Name.Group == ""
	for _, h := range r.Handlers() {
		reader := book.Reader{
			Handler: h, View: book.NewView(h.View(), own),
			Old: book.WantsOld(h) && !secret, // values of a Secret are never copied into annotations
		}
		if h.Whole {
			out.schedules.Readers = append(out.schedules.Readers, reader)
		} else {
			out.add(reader)
		}
	}
	out.ledger = ledger.Rules{
		Readers: out.readers, Annotation: op.StateAnnotation(), Manager: op.Name,
		Partial: r.Cache == dsl.CacheMetadata || len(r.Keep) > 0,
	}
	return out
}

func (r *rules) add(h book.Reader) {
	r.readers, r.handlers = append(r.readers, h), append(r.handlers, h.Handler)
	if h.On(dsl.Timer) {
		r.timers = append(r.timers, h)
	}
	if h.On(dsl.RelatedChange) {
		r.relates = append(r.relates, h.Handler)
	}
	r.events = r.events || h.On(dsl.Event)
	r.deletes = r.deletes || r.events || h.On(dsl.Delete)
	r.finalizes = r.finalizes || h.On(dsl.Delete) && !h.NoFinalizer
	r.stores = r.stores || h.Stores()
}
