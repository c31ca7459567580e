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

// Write is a write of a reconcile. If several caches have to show it, there is one for each.
type Write struct {
	// Write is the version that a cache has to show before the next reconcile begins. Its Cache is nil if no cache shows
	// the object.
	inbox.Write
	// Content distinguishes the write from others; see [breaker.Content].
	Content uint32
	// Handler is the handler that wrote it; empty for the reconcile itself. Turn counts the handlers that had run in the
	// reconcile by then, this one included.
	Handler string
	Turn    int
	// Child is true for a write to a child. Made is true if the write created the object.
	Child, Made bool
}

// journal records the writes of a reconcile. The next reconcile waits until the caches show them. Its methods may be
// called by several goroutines.
type journal struct {
	family *Family
	in     *Input

	mu     sync.Mutex
	writes []Write
	// awaited is true if a cache has to show one of the writes.
	awaited bool
}

// all returns the writes of the reconcile so far.
func (j *journal) all() []Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.writes)
}

// note records a write. The next reconcile waits for it, even if this reconcile fails: the write was sent.
func (j *journal) note(w Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, w)
	if w.Cache == nil {
		return
	}
	if !j.awaited {
		j.awaited = true
		j.in.Awaits.Tidy()
	}
	j.in.Awaits.Add(w.Write)
}

// noteAll records a write for each cache that has to show it.
func (j *journal) noteAll(w Write, caches []*source.Source, o *unstructured.Unstructured) {
	wrote := j.in.Walk.Wrote
	if w.Made {
		wrote = j.in.Walk.Made
	}
	wrote(breaker.Version{UID: o.GetUID(), Text: o.GetResourceVersion()})
	for _, f := range caches {
		w.Write = j.writeTo(f, o)
		w.Content = breaker.Content(o, j.family.settings.Operator.StateAnnotation(), w.Own && w.Key == j.in.Key)
		j.note(w)
	}
	if len(caches) == 0 {
		j.note(w)
	}
}

// writeTo returns a write that the cache of a source has to show.
func (j *journal) writeTo(f *source.Source, o *unstructured.Unstructured) inbox.Write {
	return inbox.Write{
		Cache: f, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Version: o.GetResourceVersion(), Gone: notfound.IsGoneAfter(o), Own: f == j.family.settings.Own,
	}
}

// echoes announces a write to a child, so that its event does not count as a change by others.
func (j *journal) echoes(f *source.Source, o *unstructured.Unstructured) {
	j.family.settings.Inbox.Echo(j.in.Key, j.writeTo(f, o), inbox.EchoOf(o))
}

// noteGone records a deletion.
func (j *journal) noteGone(w Write, f *source.Source, key cache.ObjectName, uid types.UID) {
	w.Write = inbox.Write{Cache: f, Key: key, UID: uid, Own: f == j.family.settings.Own}
	w.Content = crc32.ChecksumIEEE([]byte(uid))
	j.in.Walk.Wrote(breaker.Version{UID: uid})
	j.note(w)
}

// count counts a write request.
func (j *journal) count(target ops.Target) {
	j.family.settings.Metrics.Written(j.family.settings.Resource.Name.String(), target)
}

// written counts, announces and records a handler's write.
func (j *journal) written(w Write, target ops.Target, caches []*source.Source, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	j.count(target)
	j.family.settings.Host.OnWrite(j.in.Key, gvr, o)
	j.noteAll(w, caches, o)
}

// showing returns the sources whose informers may show an object.
func (j *journal) showing(gvr schema.GroupVersionResource, o *unstructured.Unstructured) (out []*source.Source) {
	for _, f := range j.family.settings.Host.Sources() {
		h := f.Informer(o.GetNamespace())
		if f.Resource().GVR == gvr && h != nil && h.Selects(cache.MetaObjectToName(o), o.GetLabels()) {
			out = append(out, f)
		}
	}
	return out
}

// Writes returns the writes so far, by handlers and by the reconcile itself.
func (s *Session) Writes() []Write { return s.journal.all() }

// Wrote records a write of the reconcile to its own object.
func (s *Session) Wrote(result patch.Result) { s.inventory.wrote(result) }

// Await makes the next reconcile wait for a version of its object that somebody else wrote.
func (s *Session) Await(live *unstructured.Unstructured) { s.journal.await(live) }

// wroteOwner records a write to the owner.
func (j *journal) wroteOwner(result patch.Result) {
	j.family.settings.Metrics.Wrote(j.family.settings.Resource.Name.String(), result.Status, result.Whole)
	if result.Status || result.Whole {
		j.noteAll(Write{}, []*source.Source{j.family.settings.Own}, result.Object)
	}
}

// await implements [Session.Await].
func (j *journal) await(live *unstructured.Unstructured) {
	j.note(Write{Write: inbox.Write{
		Cache: j.family.settings.Own, Key: j.in.Key, UID: live.GetUID(), Version: live.GetResourceVersion(), Own: true,
	}})
}

// WroteOther records and logs a handler's write to an object that is not a child. The next reconcile waits for it if an
// informer of the resource shows the object.
func (s *Session) WroteOther(handler string, operation apply.Operation, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	s.journal.written(Write{Handler: handler, Made: operation == apply.Created}, ops.Other, s.journal.showing(gvr, o), gvr, o)
	s.in.Logger.Log().Info(string(operation)+" "+ownership.PlaceOf(o).Describe(), "handler", handler)
}

// DeletedOther is WroteOther for a deletion. The next reconcile waits until no cache shows the object.
func (s *Session) DeletedOther(handler, kind string, gvr schema.GroupVersionResource, key cache.ObjectName) {
	s.journal.count(ops.Other)
	w := Write{Handler: handler}
	s.journal.note(w)
	for _, f := range s.family.settings.Host.Sources() {
		if o, found := f.Get(key); found && f.Resource().GVR == gvr {
			s.journal.noteGone(w, f, key, o.GetUID())
		}
	}
	s.in.Logger.Log().Info(string(apply.Deleted)+" "+kind+" "+key.String(), "handler", handler)
}

// write returns the fields that all writes to children in an attempt share. They say whose write it was: handlers that
// read children run again after writes by others.
func (c *Reader) write() Write {
	return Write{Handler: c.attempt.Handler, Turn: max(1, c.attempt.Number), Child: true} // pruning has no number
}

// wrote records and logs a write to a child, and keeps the child for later reads.
func (c *children) wrote(f *source.Source, operation apply.Operation, detail string, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	s := c.session
	s.lister.keep(id{gvr, cache.MetaObjectToName(o)}, o)
	c.noted(f, gvr, o, operation == apply.Created)
	c.say(operation, o, detail)
}

// noted records a write to a child: the next reconcile waits for it, and its event does not count as a change by others.
// Events of unowned children reach no owner. The source is nil for a child of an undeclared kind. Made is true if the
// write created the child.
func (c *Reader) noted(f *source.Source, gvr schema.GroupVersionResource, o *unstructured.Unstructured, made bool) {
	caches := []*source.Source{f}
	if f == nil {
		caches = c.session.journal.showing(gvr, o)
	}
	w := c.write()
	w.Made = made
	s := c.session
	s.journal.written(w, ops.Child, caches, gvr, o)
	if f != nil && !s.owner().IsOrphan(o) {
		s.journal.echoes(f, o)
	}
}

// say logs one line for each write to a child. If the operator's settings ask for Events, creations and deletions are
// Events too.
func (c *children) say(operation apply.Operation, o *unstructured.Unstructured, detail string) {
	detail = cmp.Or(detail, c.attempt.Why)
	s, handler := c.session, c.attempt.Handler
	did := string(operation) + " " + ownership.PlaceOf(o).Describe()
	line := did
	if detail != "" {
		line += ": " + detail
	}
	log := s.in.Logger.Log()
	if operation == apply.Unchanged {
		log = log.V(1)
	}
	if handler != "" {
		log = log.WithValues("handler", handler)
	}
	log.Info(line)
	reason := map[apply.Operation]string{apply.Created: "ChildCreated", apply.Deleted: "ChildDeleted"}[operation]
	if reason != "" && s.family.settings.Operator.Settings.Events.SendsChanges() {
		s.family.settings.Events.Send(ops.ByChange, s.in.Object, handler, dsl.Normal, reason, did)
	}
}
