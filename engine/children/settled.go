// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

var _ dsl.ChildInputs = (*children)(nil)

// settled is a child that was as its handler wanted it, with a digest of the inputs that it was made from.
type settled struct {
	inputs uint64
	size   int
	// object is the child in the cache of its source. A later state is another object there.
	object *cached.Object
	feed   *source.Source
}

// settledBy has settled children by the handler or step that makes them, and by their titles.
type settledBy map[string]map[string]settled

// judged has the children that Apply found to be as wanted in a reconcile, by their titles. Its zero value is empty.
type judged struct {
	mu sync.Mutex
	of map[string]settled
}

// add records a child that is as wanted, if a cache shows it in that state and nothing beside the child itself needs
// work.
func (j *judged) add(w *wanted, result *unstructured.Unstructured) {
	if w.enters || w.holds || w.feed == nil || !w.feed.Resource().Namespaced || w.spec.Name == "" {
		return
	}
	o, found := w.feed.Get(w.key)
	if !found || o.GetUID() != result.GetUID() || o.GetResourceVersion() != result.GetResourceVersion() || o.GetDeletionTimestamp() != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.of == nil {
		j.of = map[string]settled{}
	}
	j.of[ownership.TitleWithoutPolicy(w.spec)] = settled{object: o, feed: w.feed}
}

// get returns a child that add has recorded.
func (j *judged) get(title string) (settled, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one, found := j.of[title]
	return one, found
}

// Settled implements [dsl.ChildInputs].
func (c *children) Settled(spec dsl.ChildSpec, inputs uint64) (dsl.SettledChild, bool) {
	s, with := c.session, c.session.family.settings
	one, known := s.in.Memory.inputs[spec.Handler][ownership.TitleWithoutPolicy(spec)]
	if !known || one.inputs != inputs || s.in.Deleting || s.family.renamer != nil {
		return dsl.SettledChild{}, false
	}
	key, kind := cache.MetaObjectToName(one.object), one.feed.Resource()
	which := id{kind.GVR, key}
	now, found := one.feed.Get(key)
	switch {
	case !found || now != one.object || s.lister.has(which):
		return dsl.SettledChild{}, false
	case one.feed.Readable(key.Namespace) != nil || s.family.kinds.listed("", one.feed) != nil: // applying it returns the error
		return dsl.SettledChild{}, false
	case with.Register.Kept() && !with.Register.Has(with.Resource.Name, kind.GroupKind()):
		return dsl.SettledChild{}, false
	}
	s.family.sweeper.Note(spec.Handler)
	s.Claims.BeginApply(which, s.Claims.Maker(c.attempt.Handler, spec.Handler))
	out := settledChild(now)
	out.Size = one.size
	return out, true
}

// settledChild converts a cached child.
func settledChild(o *cached.Object) dsl.SettledChild {
	return dsl.SettledChild{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Read: o.Tree}
}

// manySettled is the least number of a handler's children for which their inputs are remembered. A few children are made
// again quickly.
const manySettled = 8

// Settle implements [dsl.ChildInputs].
func (c *children) Settle(handler string, all []dsl.SettledInputs) {
	m, before := c.session.in.Memory, c.session.in.Memory.inputs[handler]
	next := map[string]settled{}
	for _, each := range all {
		title := ownership.TitleWithoutPolicy(each.ChildSpec)
		one, found := c.session.judged.get(title)
		if !found {
			if one, found = before[title]; !found || one.inputs != each.Inputs {
				continue
			}
		}
		one.inputs, one.size = each.Inputs, each.Size
		next[title] = one
	}
	if len(next) < manySettled {
		delete(m.inputs, handler)
		return
	}
	if m.inputs == nil {
		m.inputs = settledBy{}
	}
	m.inputs[handler] = next
}

// Left implements [dsl.ChildInputs].
func (c *children) Left(handler string, keeps func(dsl.SettledChild) bool) ([]dsl.ChildObject, error) {
	s, owner := c.session, c.session.owner()
	all, err := c.all(func(o *cached.Object) bool { // which children are kept is decided without decoding them
		if s.family.renamer != nil || o.Controller() != owner.Object.GetUID() || !owner.Name().IsTrusted(o.GetNamespace()) {
			return false
		}
		title, named := ownership.ParseTitle(ownership.Annotation(o, owner.Keys.Child))
		return named && (collision.Renamed(s.family.settings.Handlers, title.Handler) != handler || keeps(settledChild(o)))
	})
	var out []dsl.ChildObject
	for _, found := range all {
		o := found.Object
		at := dsl.SettledChild{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
		if found.Handler == handler && !keeps(at) {
			out = append(out, found)
		}
	}
	return out, err
}
