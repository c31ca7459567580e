// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Composer makes the code of a handler from several pieces of code: steps, and the entries of forEach. Package
// handlers has one. Package config only passes on the pieces that it has compiled.
type Composer interface {
	// Step returns the code of a step, with its filter.
	Step(s Step) dsl.Func
	// All returns code that runs all pieces in order, from the first one each time.
	All(code []dsl.Func) dsl.Func
	// Each returns code that runs fn for each entry, as a sub-handler.
	Each(e *Entries, fn dsl.Func) dsl.Func
}

// Step is one of several pieces of a handler's code.
type Step struct {
	Func dsl.Func
	// When must hold, or Func does not run. Nil means always.
	When dsl.Predicate
	// Filtered, when set, reports in conditions of the object that When does not hold.
	Filtered func(s *dsl.Subject, says *dsl.Patch)
	// NotOnDelete: the step does not run for the cause delete. Only another step of the handler needs this cause.
	NotOnDelete bool
	// Entries are those of the step's handler, or nil. When is not evaluated for an object that is being deleted if the
	// handler only takes the children of its entries away.
	Entries *Entries
}

// Entries are the entries of a handler with forEach.
type Entries struct {
	// ID is the handler's id.
	ID string
	// Of computes the entries.
	Of Lister
	// Options are the options of each sub-handler.
	Options []dsl.Option
	// Deletes: the handler itself has the cause delete. Otherwise it only takes its children away for this cause.
	Deletes bool
	// Children are the names of the children of an entry. Makers are the names under which the handler makes them.
	Children, Makers []string
	// Patches are the names under which the handler patches other objects.
	Patches []string
}

// Lister computes the entries for an object.
type Lister interface {
	Entries(s *dsl.Subject) ([]Entry, error)
}

// Entry is one entry. Its key is unique among the entries of an object.
type Entry struct {
	Key string
	// Vars are the variables of the entry's expressions, in [dsl.Subject.Vars].
	Vars map[string]any
}

// Within returns a subject as one entry sees it: with its variables, and of the handler's children with its own alone,
// so that each name is unique.
func (e *Entries) Within(s *dsl.Subject, one Entry) *dsl.Subject {
	out := *s
	out.Vars = one.Vars
	if s.Children != nil {
		out.Children = entryChildren{s.Children, e, one.Key}
	}
	out.Made = slices.Clone(s.Made)
	for i := range out.Made {
		if slices.Contains(e.Children, out.Made[i].Name) {
			out.Made[i].List = false
		}
	}
	return &out
}

// Seen returns the children of other handlers and those of one entry.
func (e *Entries) Seen(all []dsl.ChildObject, key string) []dsl.ChildObject {
	out := make([]dsl.ChildObject, 0, len(all))
	for _, found := range all {
		if slices.Contains(e.Makers, found.Handler) {
			if found.Key != key {
				continue
			}
			found.Key = ""
		}
		out = append(out, found)
	}
	return out
}

// entryChildren are the children of an object as one entry sees them.
type entryChildren struct {
	dsl.ChildReader
	entries *Entries
	key     string
}

// All returns the children that the entry sees.
func (c entryChildren) All() ([]dsl.ChildObject, error) {
	all, err := c.ChildReader.All()
	return c.entries.Seen(all, c.key), err
}

// Compose registers the composer of handlers. Without one, configurations cannot have steps, forEach, and filters that
// use old or diff.
func (r *Registry) Compose(c Composer) { r.composer = c }

// Composer returns the composer of handlers; nil without one.
func (r *Registry) Composer() Composer { return r.composer }
