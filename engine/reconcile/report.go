// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Report is the present state of a resource.
type Report struct {
	Name string
	// Own is the source of its objects. Children are the sources of kinds of children, and Related the sources of
	// related objects by relation.
	Own      *source.Source
	Children []*source.Source
	Related  iter.Seq2[string, *source.Source]
	// Unready are its objects that are not ready.
	Unready []ops.Unready
	// Schedules are its schedules that fail, by their ids.
	Schedules map[string]ops.UnreadyObject
}

// Checks returns the checks of the resource. Departed names objects with unconfirmed deletions, running the handlers
// that run for long, and daemons the daemons that do not stop; each may be empty. By ends messages about missing rights.
func (r Report) Checks(by, departed, running, daemons string) []ops.Check {
	out := []ops.Check{r.Own.Check("resource/"+r.Name, by)}
	warn := func(about, message string, of ...string) {
		if message != "" {
			out = append(out, ops.Check{Name: about + strings.Join(append([]string{r.Name}, of...), "/"), State: ops.Warn, Message: message})
		}
	}
	warn("departed/", departed)
	r.EachOtherSource(func(what, name string, f *source.Source) { out = append(out, f.Check(what+r.Name+"/"+name, by)) })
	warn("running/", running)
	warn("daemons/", daemons)
	for _, id := range slices.Sorted(maps.Keys(r.Schedules)) {
		warn("schedule/", r.Schedules[id].String(), id)
	}
	for _, s := range r.Unready {
		out = append(out, s.Checks(r.Name)...)
	}
	return out
}

// EachOtherSource calls a function for each source of children and related objects, with its kind and name.
func (r Report) EachOtherSource(do func(what, name string, f *source.Source)) {
	for _, f := range r.Children {
		do("child/", f.Name().String(), f)
	}
	for relation, f := range r.Related {
		do("related/", relation, f)
	}
}

// Stats returns the resource's statistics for metrics, as far as its sources know them.
func (r Report) Stats() ops.ResourceStats {
	s := ops.ResourceStats{Resource: r.Name, Up: r.Own.Status().Phase == source.Running, Sources: map[string]bool{}}
	s.Objects, s.LastEvent = r.Own.Stats()
	r.EachOtherSource(func(what, name string, f *source.Source) { s.Sources[what+name] = f.Status().Well() })
	return s
}
