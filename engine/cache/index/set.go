// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/decide/subscription"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Settings configure a set. The log is optional.
type Settings struct {
	// Indexes are the operator's indexes.
	Indexes []*dsl.IndexSpec
	// Sources creates the sources of the indexes.
	Sources *source.Factory
	Log     logr.Logger
}

// Set has the indexes of an operator. Its methods may be called at any time by any number of goroutines.
type Set struct {
	settings Settings
	all      []*one
}

// one is a running index.
type one struct {
	*dsl.IndexSpec
	values  *Index
	feed    *source.Source
	filling sync.Mutex
	readers subscription.Readers[Key, reader]
	left    leftOut
	log     logr.Logger
	// cache is the source, for the question whether its cache has all objects.
	cache interface{ Complete() error }
}

// unread returns an error if values may be missing from the index. A resource without a CRD has no objects, so its index
// is complete.
func (x *one) unread() error { return x.cache.Complete() }

// New returns the indexes of an operator, which are empty until [Set.Run].
func New(s Settings) *Set {
	out := &Set{settings: s}
	for _, spec := range s.Indexes {
		x := &one{IndexSpec: spec, values: newIndex(), log: s.Log.WithValues("index", spec.Name, "resource", spec.Resource.String())}
		x.feed = s.Sources.New(source.Settings{
			Name: spec.Resource, Log: x.log, Handler: x,
			Source: watch.Source{LabelSelector: spec.LabelSelector, FieldSelector: spec.FieldSelector},
		})
		x.cache = x.feed
		out.all = append(out.all, x)
	}
	return out
}

// Sources returns the sources of the indexes, in declared order.
func (s *Set) Sources() (out []*source.Source) {
	for _, x := range s.all {
		out = append(out, x.feed)
	}
	return out
}

// Run keeps the indexes until ctx ends.
func (s *Set) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, x := range s.all {
		running.Go(func() { x.feed.Run(ctx) })
	}
}

// Settled waits until the source of each index runs or has a fault, or until ctx ends.
func (s *Set) Settled(ctx context.Context) {
	for _, x := range s.all {
		select {
		case <-x.feed.Settled():
		case <-ctx.Done():
			return
		}
	}
}

// Listed must be called when a listing of a resource is complete. Owners whose handlers could not read an index over it
// are queued.
func (s *Set) Listed(gvr schema.GroupVersionResource) {
	for _, x := range s.all {
		if x.feed.Serves(gvr) {
			x.Grant()
		}
	}
}

// Checks returns the checks of the indexes. A message about a missing right ends with by.
func (s *Set) Checks(by string) (out []ops.Check) {
	for _, x := range s.all {
		out = append(out, x.feed.Check("index/"+x.Name, by))
		if text := x.left.String(); text != "" {
			out = append(out, ops.Check{Name: "indexed/" + x.Name, State: ops.Warn, Message: text})
		}
	}
	return out
}

// Stats returns the indexes for metrics.
func (s *Set) Stats() (out []ops.IndexStats) {
	for _, x := range s.all {
		now := ops.IndexStats{Index: x.Name, Up: x.feed.Status().Phase == source.Running, LeftOut: x.left.count(), Read: x.readers.Size()}
		now.Objects, now.Keys = x.values.Size()
		out = append(out, now)
	}
	return out
}
