// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"hash/crc32"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Write is a write of a reconcile. One that several caches have to show is there once for each.
type Write struct {
	// Write is what a cache has to show before the next reconcile begins. Its Cache is nil where none does.
	inbox.Write
	// Content distinguishes the write from others; see [breaker.Content].
	Content uint32
	// Handler wrote it; empty for the reconcile itself. Turn is how many handlers had had their turn in the reconcile with it.
	Handler string
	Turn    int
	// Child: it is a child that was written. Made: the object was not there before.
	Child, Made bool
}

// journal has what a reconcile writes. The next reconcile waits until the caches show it. Its methods may be called by several goroutines.
type journal struct {
	family *Family
	pass   *Pass

	mu     sync.Mutex
	writes []Write
	// awaited: some cache has to show one of them.
	awaited bool
}

// all returns what the reconcile has written so far.
func (j *journal) all() []Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.writes)
}

// note notes a write, for which the next reconcile waits. It holds even when this reconcile fails: what was sent was sent.
func (j *journal) note(w Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, w)
	if w.Cache == nil {
		return
	}
	if !j.awaited {
		j.awaited = true
		j.pass.Awaits.Tidy()
	}
	j.pass.Awaits.Add(w.Write)
}

// noteAll notes a write for each cache that has to show it.
func (j *journal) noteAll(w Write, caches []*source.Source, o *unstructured.Unstructured) {
	wrote := j.pass.Walk.Wrote
	if w.Made {
		wrote = j.pass.Walk.Made
	}
	wrote(breaker.Version{UID: o.GetUID(), Text: o.GetResourceVersion()})
	for _, f := range caches {
		w.Write = j.writeTo(f, o)
		w.Content = breaker.Content(o, j.family.settings.Operator.StateAnnotation(), w.Own && w.Key == j.pass.Key)
		j.note(w)
	}
	if len(caches) == 0 {
		j.note(w)
	}
}

// writeTo is a write that the cache of a feed has to show.
func (j *journal) writeTo(f *source.Source, o *unstructured.Unstructured) inbox.Write {
	return inbox.Write{
		Cache: f, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Version: o.GetResourceVersion(), Gone: notfound.With(o), Own: f == j.family.settings.Own,
	}
}

// echoes notes a write to a child, so that its event does not count as a change by others.
func (j *journal) echoes(f *source.Source, o *unstructured.Unstructured) {
	j.family.settings.Box.Echo(j.pass.Key, j.writeTo(f, o), inbox.EchoOf(o))
}

// noteGone notes a deletion.
func (j *journal) noteGone(w Write, f *source.Source, key cache.ObjectName, uid types.UID) {
	w.Write = inbox.Write{Cache: f, Key: key, UID: uid, Own: f == j.family.settings.Own}
	w.Content = crc32.ChecksumIEEE([]byte(uid))
	j.pass.Walk.Wrote(breaker.Version{UID: uid})
	j.note(w)
}

// count counts a write request.
func (j *journal) count(target ops.Target) {
	j.family.settings.Metrics.Written(j.family.settings.Resource.Name.String(), target)
}

// written notes a handler's write.
func (j *journal) written(w Write, target ops.Target, caches []*source.Source, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	j.count(target)
	j.family.settings.Host.Announce(j.pass.Key, gvr, o)
	j.noteAll(w, caches, o)
}

// showing are the feeds whose informers may show an object.
func (j *journal) showing(gvr schema.GroupVersionResource, o *unstructured.Unstructured) (out []*source.Source) {
	for _, f := range j.family.settings.Host.Feeds() {
		h := f.Informer(o.GetNamespace())
		if f.Resource().GVR == gvr && h != nil && h.Selects(cache.MetaObjectToName(o), o.GetLabels()) {
			out = append(out, f)
		}
	}
	return out
}

// Writes returns what the reconcile has written so far, its handlers and itself.
func (s *Session) Writes() []Write { return s.journal.all() }

// Wrote notes a write of the reconcile to its own object.
func (s *Session) Wrote(result patch.Result) { s.record.wrote(result) }

// Await makes the next reconcile wait for a version of its object that somebody else wrote.
func (s *Session) Await(live *unstructured.Unstructured) { s.journal.await(live) }

// wroteOwner notes a write to the owner.
func (j *journal) wroteOwner(result patch.Result) {
	j.family.settings.Metrics.Wrote(j.family.settings.Resource.Name.String(), result.Status, result.Whole)
	if result.Status || result.Whole {
		j.noteAll(Write{}, []*source.Source{j.family.settings.Own}, result.Object)
	}
}

// await is [Session.Await].
func (j *journal) await(live *unstructured.Unstructured) {
	j.note(Write{Write: inbox.Write{
		Cache: j.family.settings.Own, Key: j.pass.Key, UID: live.GetUID(), Version: live.GetResourceVersion(), Own: true,
	}})
}

// WroteOther notes a handler's write to an object that is no child, and says so in the log. The next reconcile waits for
// it where the resource's own informers show it.
func (s *Session) WroteOther(handler string, deed apply.Deed, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	s.journal.written(Write{Handler: handler, Made: deed == apply.Created}, ops.Other, s.journal.showing(gvr, o), gvr, o)
	s.pass.Logger.Log().Info(string(deed)+" "+ownership.PlaceOf(o).People(), "handler", handler)
}

// DeletedOther is WroteOther for a deletion: what the caches still have is waited for.
func (s *Session) DeletedOther(handler, kind string, gvr schema.GroupVersionResource, key cache.ObjectName) {
	s.journal.count(ops.Other)
	w := Write{Handler: handler}
	s.journal.note(w)
	for _, f := range s.family.settings.Host.Feeds() {
		if o, found := f.Get(key); found && f.Resource().GVR == gvr {
			s.journal.noteGone(w, f, key, o.GetUID())
		}
	}
	s.pass.Logger.Log().Info(string(apply.Deleted)+" "+kind+" "+key.String(), "handler", handler)
}

// write is what is the same of all writes of children in an attempt. Handlers that read children run again for what
// others did.
func (c *Reader) write() Write {
	return Write{Handler: c.attempt.Handler, Turn: max(1, c.attempt.Number), Child: true} // a sweep has no number
}

// wrote notes a child as it was written, and says so.
func (c *children) wrote(f *source.Source, deed apply.Deed, detail string, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	s := c.session
	s.lister.keep(id{gvr, cache.MetaObjectToName(o)}, o)
	c.noted(f, gvr, o, deed == apply.Created)
	c.say(deed, o, detail)
}

// noted notes a write to a child: the next reconcile waits for it, and its event is no news. That of an unowned one never is. There is
// no feed for a child of a kind that is not declared. Made: it was not there before.
func (c *Reader) noted(f *source.Source, gvr schema.GroupVersionResource, o *unstructured.Unstructured, made bool) {
	caches := []*source.Source{f}
	if f == nil {
		caches = c.session.journal.showing(gvr, o)
	}
	w := c.write()
	w.Made = made
	s := c.session
	s.journal.written(w, ops.Child, caches, gvr, o)
	if f != nil && !s.owner().Forgets(o) {
		s.journal.echoes(f, o)
	}
}

// say says what a handler did to a child, in one line for each write. Creations and deletions are Events too, where the
// operator's settings ask for them.
func (c *children) say(deed apply.Deed, o *unstructured.Unstructured, detail string) {
	detail = cmp.Or(detail, c.attempt.Why)
	s, handler := c.session, c.attempt.Handler
	did := string(deed) + " " + ownership.PlaceOf(o).People()
	line := did
	if detail != "" {
		line += ": " + detail
	}
	log := s.pass.Logger.Log()
	if deed == apply.Unchanged {
		log = log.V(1)
	}
	if handler != "" {
		log = log.WithValues("handler", handler)
	}
	log.Info(line)
	reason := map[apply.Deed]string{apply.Created: "ChildCreated", apply.Deleted: "ChildDeleted"}[deed]
	if reason != "" && s.family.settings.Operator.Settings.Events == dsl.EventsChanges {
		s.family.settings.Events.Send(ops.ByChange, s.pass.Object, handler, dsl.Normal, reason, did)
	}
}
