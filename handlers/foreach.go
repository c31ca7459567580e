// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// forEach runs code for each entry of a handler, as a sub-handler.
type forEach struct{ *actions.Entries }

// run declares a sub-handler for each entry. After all have succeeded, it takes away the children of entries that
// no longer exist, and gives back what they have patched.
func (e forEach) run(r *dsl.Request, fn dsl.Func) error {
	list, err := e.list(r)
	if err != nil {
		return err
	}
	made := &taken{namespace: r.Object.GetNamespace()}
	there := func(key string) bool {
		return slices.ContainsFunc(list, func(one actions.Entry) bool { return one.Key == key })
	}
	forced := &forced{}
	for i, one := range list {
		targets := entryTargets{forced: forced, there: there, last: i == len(list)-1}
		r.Handle(entryID(one.Key), e.one(one, fn, made, targets), e.Options...)
	}
	if leaves(e.Entries, r) {
		return nil // each entry has taken its own children away
	}
	r.Then(func(ctx context.Context, r *dsl.Request) error {
		failed := e.remove(ctx, r, func(c dsl.ChildObject) bool { return makes(e.Entries, c.Handler) && !there(c.Key) })
		_, lost := e.giveBack(ctx, r.Targets, there)
		return errors.Join(failed, lost)
	})
	return nil
}

// leaves reports whether the object is being deleted and the handler only has to take its children away.
func leaves(e *actions.Entries, r *dsl.Request) bool {
	return e != nil && r.Cause == dsl.Delete && !e.Deletes
}

// makes reports whether the handler of the entries makes children under a name.
func makes(e *actions.Entries, maker string) bool { return slices.Contains(e.Makers, maker) }

// list returns the entries of a request. If the handler only has to take children away, it returns the entries that
// have children; the expression is not evaluated then.
func (e forEach) list(r *dsl.Request) ([]actions.Entry, error) {
	if !leaves(e.Entries, r) {
		return e.Of.Entries(&r.Subject)
	}
	all, err := r.Children.All()
	if err != nil {
		return nil, fmt.Errorf("working out forEach: %w", err)
	}
	var out []actions.Entry
	for _, found := range all {
		if makes(e.Entries, found.Handler) && !slices.ContainsFunc(out, func(one actions.Entry) bool { return one.Key == found.Key }) {
			out = append(out, actions.Entry{Key: found.Key})
		}
	}
	return out, nil
}

// one returns the code for one entry.
func (e forEach) one(of actions.Entry, fn dsl.Func, made *taken, targets entryTargets) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		own := *r
		own.Subject = *e.Within(&r.Subject, of)
		own.Children = entryChildren{r.Children, e.Entries, of.Key, made}
		own.Subject.Children = own.Children
		targets := targets // of this attempt
		targets.Targets, targets.forEach, targets.key = r.Targets, e, of.Key
		own.Targets = targets
		defer func() { r.Step, r.Again = own.Step, own.Again }() // also after a panic
		return targets.after(ctx, fn(ctx, &own))
	}
}

// remove takes away children that are not desired any more.
func (e forEach) remove(ctx context.Context, r *dsl.Request, unwanted func(dsl.ChildObject) bool) error {
	if len(e.Makers) == 0 {
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
