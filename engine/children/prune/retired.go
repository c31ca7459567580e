// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// RetiredSettings configure the retired kinds of a resource.
type RetiredSettings struct {
	Register *Register
	// Resource is the resource of the owners.
	Resource dsl.ResourceName
	Log      logr.Logger
	// Sources creates the sources of the kinds, and counts them.
	Sources *source.Factory
	// Granted is called when a right that a source lacked was granted.
	Granted interface{ Grant() }
	Family  Family
}

// Family knows the children of the resource's objects.
type Family interface {
	// Owns reports whether the resource owns a kind, as far as the API server's discovery is known.
	Owns(schema.GroupKind) bool
	// Claims reports whether an object claims to be a child of one of the resource's objects.
	Claims(*cached.Object) bool
	// OnEvent gets the events of such objects.
	OnEvent(*source.Source, watch.Event)
}

// Retired has the retired kinds of one resource. The methods may be called by any number of goroutines.
type Retired struct {
	settings RetiredSettings
	running  sync.WaitGroup

	mu  sync.Mutex
	end context.CancelFunc
	all []*kind
	// over has the registered kinds that are closed in this term: no child was found, or there are too many kinds.
	over map[schema.GroupKind]bool
}

// kind is a retired kind.
type kind struct {
	schema.GroupKind
	feed *source.Source
	end  context.CancelFunc
	// seen has the objects that were passed to Seen. Only the source's goroutine uses it.
	seen map[types.UID]bool
}

// handler handles the events and the steps of a kind's source.
type handler struct {
	retired *Retired
	kind    *kind
}

// NewRetired returns the retired kinds of a resource. It does not watch them yet.
func NewRetired(s RetiredSettings) *Retired { return &Retired{settings: s} }

// Begin begins a term, unless one is running. The term ends with ctx or with End. Once the register was read, the
// registered kinds that the resource does not own are watched.
func (k *Retired) Begin(ctx context.Context) {
	if !k.settings.Register.Kept() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end != nil {
		return
	}
	ctx, k.end = context.WithCancel(ctx)
	k.over = map[schema.GroupKind]bool{}
	k.running.Go(func() {
		if k.settings.Register.Await(ctx) {
			k.open(ctx)
		}
	})
}

// End ends the term, if there is one.
func (k *Retired) End() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end != nil {
		k.end()
		k.end = nil
	}
}

// Wait waits, after End, until no kind is watched.
func (k *Retired) Wait() { k.running.Wait() }

// Sources returns the running sources.
func (k *Retired) Sources() (out []*source.Source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.all {
		out = append(out, one.feed)
	}
	return out
}

// Searches reports whether the first listing of a kind is under way, or about to begin. It is false for a kind that cannot be listed.
func (k *Retired) Searches(of schema.GroupKind) bool {
	with := k.settings
	switch {
	case with.Family.Owns(of):
		return false
	case !with.Register.Known():
		return true
	}
	for _, f := range k.Sources() {
		if phase := f.Status().Phase; f.OfKind() == of {
			return phase == source.Starting || phase == source.Faulty
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.over[of] && with.Register.Has(with.Resource, of) // its source is about to begin
}

// Searching reports whether Searches holds for some kind of the register, or the register is not known yet.
func (k *Retired) Searching() bool {
	return !k.settings.Register.Known() || slices.ContainsFunc(k.settings.Register.Of(k.settings.Resource), k.Searches)
}

// open watches kinds until ctx ends.
func (k *Retired) open(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, one := range k.choose() {
		var ending context.Context
		ending, one.end = context.WithCancel(ctx)
		one.feed = k.settings.Sources.New(k.feedOf(one))
		k.settings.Log.Info("kind of children is no longer declared; looking for children that are left", "kind", one.String())
		k.mu.Lock()
		k.all = append(slices.Clone(k.all), one)
		k.mu.Unlock()
		running.Go(func() {
			defer k.dismiss(one)
			one.feed.Run(ending)
		})
	}
}

// choose returns the kinds to watch: the registered kinds that the resource does not own, as many as there may be
// sources.
func (k *Retired) choose() (all []*kind) {
	var left []string
	for _, of := range k.settings.Register.Of(k.settings.Resource) {
		if k.settings.Family.Owns(of) {
			continue
		}
		if !k.settings.Sources.Borrow() {
			left = append(left, of.String())
			k.leave(of)
			continue
		}
		all = append(all, &kind{GroupKind: of, seen: map[types.UID]bool{}})
	}
	if len(left) > 0 {
		k.settings.Log.Info("too many kinds of children are no longer declared; children of some kinds are left alone",
			logmark.Warning, true, "number", len(left), "kinds", left[:min(len(left), shownKinds)])
	}
	return all
}

// shownKinds is how many kinds the log shows.
const shownKinds = 5

// leave records that a kind is not watched in this term.
func (k *Retired) leave(of schema.GroupKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over[of] = true
}

// OnEvent implements [source.Handler].
func (h handler) OnEvent(ev watch.Event) {
	h.retired.pass(h.kind, ev)
	if ev.Kind == watch.Deleted || ev.Old != nil && h.retired.settings.Family.Claims(ev.Old) {
		h.kind.feed.Nudge() // it may have been the last one
	}
}

// Grant implements [source.Handler].
func (h handler) Grant() { h.retired.settings.Granted.Grant() }

// Listed implements [source.Steps]: a kind without children is closed.
func (h handler) Listed(ctx context.Context, well bool) (again bool) {
	left := h.retired.passAll(h.kind)
	return well && !left && h.kind.feed.Complete() == nil && h.retired.close(ctx, h.kind)
}

// Absent implements [source.Steps]: a kind without a CRD has no children.
func (h handler) Absent(ctx context.Context) { h.retired.close(ctx, h.kind) }

// feedOf returns the settings of a kind's source. Its cache holds only the metadata of objects.
func (k *Retired) feedOf(one *kind) source.Settings {
	gvk := one.WithVersion("")
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return source.Settings{
		Name: dsl.ResourceName{Resource: guess.Resource, Group: guess.Group}, Kind: gvk,
		Source: watch.Source{Form: cached.Form{Profile: dsl.CacheMetadata}},
		Log:    k.settings.Log.WithValues("child", one.String()), Handler: handler{k, one}, Steps: handler{k, one},
	}
}

// pass passes an event on to Seen, unless the resource owns the kind.
func (k *Retired) pass(one *kind, ev watch.Event) {
	if !k.settings.Family.Owns(one.GroupKind) {
		k.settings.Family.OnEvent(one.feed, ev)
	}
}

// passAll passes the listed children on to Seen, because the first reconciles of their owners did not see them. It reports whether
// there are any.
func (k *Retired) passAll(one *kind) (some bool) {
	for _, o := range one.feed.Objects("") {
		if !k.settings.Family.Claims(o) {
			continue
		}
		some = true
		if !one.seen[o.GetUID()] {
			one.seen[o.GetUID()] = true
			k.pass(one, watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Object: o})
		}
	}
	return some
}

// close ends a kind without children, and reports whether to try again.
func (k *Retired) close(ctx context.Context, one *kind) (again bool) {
	log := k.settings.Log.WithValues("kind", one.String())
	if !k.settings.Family.Owns(one.GroupKind) {
		if err := k.settings.Register.Remove(ctx, k.settings.Resource, one.GroupKind); err != nil {
			log.V(1).Info("removing kind from the register failed; it is retried", "error", err.Error())
			return true
		}
		k.leave(one.GroupKind) // the register may keep it
		log.Info("kind of children is no longer declared, and no child is left")
	}
	one.end()
	return false
}

// dismiss removes a kind whose source has ended.
func (k *Retired) dismiss(one *kind) {
	one.end()
	k.settings.Sources.Return()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = slices.DeleteFunc(slices.Clone(k.all), func(other *kind) bool { return other == one })
}
