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

// object is the object of a daemon: as the cache shows it, or as the daemon has written it.
type object struct {
	id
	settings *Settings
	// changes wakes the daemon's code, and news its slot. Both get a value for each new version by others.
	changes, news chan struct{}

	// writing is held during a write, and guards ignored; see [Write].
	writing sync.Mutex
	ignored []uint64

	// mu guards these fields.
	mu       sync.Mutex
	versions versions
	// last is the object as the cache showed it last. tree is the object as a reconcile has read it last, if the cache
	// has only keys.
	last *cached.Object
	tree *unstructured.Unstructured
	// written is the object after the last write of the daemon, or as the reconcile that started it had it, until the
	// cache shows it.
	written *unstructured.Unstructured
	// seen is a digest of the daemon's view at its last read, or after its own changes.
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

// changed notes the present version of the object.
func (o *object) changed(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changedLocked(version)
}

// show notes the object as a reconcile has read it.
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

// lookLocked reads the cache. If its versions have gone back, as after a restored backup, later ones are dropped.
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

// signal wakes the daemon and its slot if there is news.
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

// Newest returns the newest known object: from the cache, from the daemon's last write, or from the last reconcile.
func (o *object) Newest() *unstructured.Unstructured {
	tree, last := o.newest()
	if tree != nil {
		return tree.DeepCopy()
	}
	return o.settings.Cache.Tree(last)
}

// newest returns the newest known object: a tree, which must not be changed, or an object of the cache.
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

// read returns the newest object for the daemon's code, and notes that the daemon has seen it.
func (o *object) read() *unstructured.Unstructured {
	now := o.Newest()
	view := o.view(now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.versions.read(now.GetResourceVersion()) { // another call may have read a newer version
		o.seen = view
	}
	return now
}

// view returns a digest of the daemon's view of an object.
func (o *object) view(of *unstructured.Unstructured) string {
	return o.settings.Host.View(o.handler, of)
}

// differs reports whether the daemon's view differs from the one that it has seen last, or left.
func (o *object) differs() bool {
	now := o.view(o.Newest())
	o.mu.Lock()
	defer o.mu.Unlock()
	return now != o.seen
}

// send writes a patch.
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

// sent notes the result of a write.
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
	if whole && o.seen == was { // own changes are no news, unless the daemon missed earlier ones
		o.seen = is
	}
}
