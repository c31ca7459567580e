// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// id names one daemon of one object.
type id struct {
	handler *dsl.Handler
	key     cache.ObjectName
	uid     types.UID
}

// object is the object of a daemon as the daemon knows it: as the cache shows it, or as the daemon has written it.
type object struct {
	id
	settings *Settings
	// changes are the daemon's, and news those of its slot: both get a value when there is a version that is news.
	changes, news chan struct{}

	// writing is held during a write, and guards ignored, which is that of [Write].
	writing sync.Mutex
	ignored []uint64

	// mu guards these fields.
	mu       sync.Mutex
	versions versions
	// last is the object as the cache has shown it last; tree is the object as a reconcile has read it last, if caches have the key alone.
	last *cached.Object
	tree *unstructured.Unstructured
	// written is the object as the daemon has written it last, or the reconcile that started it, until the cache shows it.
	written *unstructured.Unstructured
	// seen is a digest of the daemon's view, as it has seen it last, or left it.
	seen string
}

// newObject returns an object as the cache and the reconcile that starts the daemon have it.
func newObject(s *Settings, of id, last *cached.Object, passed *unstructured.Unstructured) *object {
	o := &object{
		id: of, settings: s, changes: make(chan struct{}, 1), news: make(chan struct{}, 1),
		last: last, written: passed, versions: versions{known: passed.GetResourceVersion()},
	}
	if s.Keys {
		o.tree = passed
	}
	return o
}

// changed takes a version that the object has now.
func (o *object) changed(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changedLocked(version)
}

// show takes the object as a reconcile has read it.
func (o *object) show(tree *unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tree = tree
	o.changedLocked(tree.GetResourceVersion())
}

func (o *object) changedLocked(version string) {
	o.lookLocked()
	if o.written != nil && atMost(o.written.GetResourceVersion(), version) {
		o.written = nil // the cache shows it
	}
	o.signal(o.versions.event(version))
}

// lookLocked looks at the cache. If its versions have gone back, as after a restored backup, later ones do not count.
func (o *object) lookLocked() {
	now, found := o.settings.Cache.Get(o.key)
	if !found || now.GetUID() != o.uid {
		return
	}
	if older(now.GetResourceVersion(), o.last.GetResourceVersion()) {
		o.written, o.versions.known = nil, ""
	}
	o.last = now
}

// signal reports a change to the daemon and its slot, if there is one.
func (o *object) signal(news bool) {
	if !news {
		return
	}
	for _, to := range []chan struct{}{o.changes, o.news} {
		select {
		case to <- struct{}{}:
		default:
		}
	}
}

// Newest returns the object as it is known now: as the cache has it, or as the daemon has written it, if that is newer;
// or as it was last seen.
func (o *object) Newest() *unstructured.Unstructured {
	tree, last := o.newest()
	if tree != nil {
		return tree.DeepCopy()
	}
	return o.settings.Cache.Tree(last)
}

// newest returns the object as it is known now: a tree, which must not be changed, or an object of the cache.
func (o *object) newest() (*unstructured.Unstructured, *cached.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lookLocked()
	shown := o.last.GetResourceVersion()
	if o.tree != nil {
		shown = o.tree.GetResourceVersion()
	}
	if o.written != nil && !atMost(o.written.GetResourceVersion(), shown) {
		return o.written, nil
	}
	o.written = nil
	return o.tree, o.last
}

// read returns the object as it is known now, for the daemon, which has seen it then.
func (o *object) read() *unstructured.Unstructured {
	now := o.Newest()
	view := o.view(now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.versions.read(now.GetResourceVersion()) { // of two that read at once, the other one may have come first
		o.seen = view
	}
	return now
}

// view returns a digest of the daemon's view of an object.
func (o *object) view(of *unstructured.Unstructured) string {
	return o.settings.Host.View(o.handler, of)
}

// differs reports whether the daemon's view is another one than it has seen last, or left.
func (o *object) differs() bool {
	now := o.view(o.Newest())
	o.mu.Lock()
	defer o.mu.Unlock()
	return now != o.seen
}

// send writes what a patch asks for.
func (o *object) send(ctx context.Context, p *dsl.Patch, log logr.Logger) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	base := o.Newest()
	o.mu.Lock()
	o.signal(o.versions.send(base.GetResourceVersion()))
	o.mu.Unlock()
	sent, err := o.settings.Host.Send(ctx, Write{Key: o.key, Handler: o.handler.ID, Object: base, Patch: p, Ignored: o.ignored, Log: log})
	if err == nil {
		o.ignored = sent.Ignored
	}
	o.sent(sent)
	return err
}

// sent takes the result of a write.
func (o *object) sent(sent Sent) {
	var was, is string
	whole := sent.Whole && sent.On != nil
	if whole {
		was, is = o.view(o.settings.Host.Shown(sent.On)), o.view(o.settings.Host.Shown(sent.Object))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	version := ""
	if sent.Status || sent.Whole {
		version, o.written = sent.Object.GetResourceVersion(), o.settings.Host.Shown(sent.Object)
	}
	o.signal(o.versions.sent(version) || sent.Contended)
	if whole && o.seen == was { // its own changes are no news; if it had not seen all of the object, it has not now
		o.seen = is
	}
}
