// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon runs the daemons of a resource: one goroutine for each object and daemon, which lives as long as the object, its
// filters and the term of leadership. Passes say which daemons an object has; events of deletion end them at once.
package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// Settings are what the daemons of one resource have in common. All are required but Handlers.
type Settings struct {
	// Resource is the resource's name, for metrics.
	Resource string
	Handlers []*dsl.Handler
	// Grace is the time to stop of a daemon that names none.
	Grace time.Duration
	// Cache has the objects. Keys: it has no more than their keys.
	Cache Cache
	Keys  bool
	Host  Host
	// Texts are those with which objects fail.
	Texts *attempt.Texts
	// Metrics count runs that have ended, and Events say something on an object.
	Metrics Metrics
	Events  Events
	Log     logr.Logger
}

// Cache has the objects of a resource; see [feed.Feed].
type Cache interface {
	// Get returns an object.
	Get(cache.ObjectName) (*cached.Object, bool)
	// Tree returns the tree of an object.
	Tree(*cached.Object) *unstructured.Unstructured
}

// Metrics count runs that have ended; see [ops.Metrics].
type Metrics interface{ Handled(ops.HandlerRun) }

// Events say something on an object; see [events.Recorder].
type Events interface {
	Warn(o runtime.Object, action, reason, note string)
}

// Host is what daemons need of the process that runs their resource.
type Host interface {
	// Shown returns an object that was written as caches would show it.
	Shown(*unstructured.Unstructured) *unstructured.Unstructured
	// View digests what a daemon looks at of an object.
	View(*dsl.Handler, *unstructured.Unstructured) string
	// Look has a pass look at a key.
	Look(cache.ObjectName)
	// Equip gives a run what it reads and acts with, until its span is over.
	Equip(Run, *dsl.DaemonRequest)
	// Send sends what a daemon wants of its object.
	Send(context.Context, Write) (Sent, error)
	// Held is the fence; see [transport.Held].
	Held(context.Context) bool
	// Logged reports whether one line of the log stands for all errors of this kind.
	Logged(error) bool
}

// Run is one run of a daemon.
type Run struct {
	Handler *dsl.Handler
	Key     cache.ObjectName
	Object  *unstructured.Unstructured
	// Daemon is the daemon that runs.
	Daemon Daemon
	Span   *transport.Span
	Log    logr.Logger
}

// Daemon is a daemon of an object.
type Daemon interface {
	// Newest returns the object as it is known now. The daemon has not seen it by that.
	Newest() *unstructured.Unstructured
}

// Write is what a daemon wants of its object, which is worked out from the object as it knows it. Ignored is as in
// [patch.Target].
type Write struct {
	Key     cache.ObjectName
	Object  *unstructured.Unstructured
	Patch   *dsl.Patch
	Ignored []uint64
	Log     logr.Logger
}

// Sent is what has come of it. Contended: others have written meanwhile.
type Sent struct {
	patch.Result
	Contended bool
	// On is the object that it was laid on, nil where nothing was sent.
	On *unstructured.Unstructured
}

// Sight is what a pass sees of a key.
type Sight struct {
	Key cache.ObjectName
	// UID is that of the object that the key has, and Object that as the pass has left it, or as it has read it; empty and
	// nil when it has none.
	UID    types.UID
	Object *unstructured.Unstructured
	// Deleting: the object is being deleted.
	Deleting bool
	// Starts: those that are to run and do not are started. Without, daemons are only told to stop.
	Starts bool
	// Pass answers for the pass; nil where the key has no object.
	Pass Pass
}

// Pass answers what is asked about the daemons of the object of a pass.
type Pass interface {
	// Sees asks the filters of a daemon, and reports whether they have an answer.
	Sees(h *dsl.Handler) (holds, known bool)
	// About is what a daemon is asked about.
	About(h *dsl.Handler) *dsl.Subject
	// Memo is the object's, which is kept from then on.
	Memo() *dsl.Memo
}

// Crew are the daemons of one resource. Its methods may be called by any number of goroutines.
type Crew struct {
	settings Settings

	mu sync.Mutex
	// term is what daemons run in, nil outside of a term of leadership. Begun is that of which the end is waited for.
	term, begun context.Context
	posts       map[cache.ObjectName]*post
	running     sync.WaitGroup
}

// post is what there is of daemons at one key.
type post struct {
	// lives are the daemons that have not ended, one of each handler at most, whatever object it is about.
	lives []*life
	// over are the daemons that are not run again for the object with this uid.
	uid  types.UID
	over map[*dsl.Handler]bool
}

// New returns a crew outside of a term.
func New(s Settings) *Crew { return &Crew{settings: s, posts: map[cache.ObjectName]*post{}} }

// Begin begins a term, which ends with ctx, by a loss of leadership, unless End is called before. It may be called again
// with the same context.
func (c *Crew) Begin(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.settings.Handlers) == 0 || c.begun == ctx {
		return
	}
	for key, p := range c.posts { // objects may have gone between the terms
		if o, found := c.settings.Cache.Get(key); !found || o.GetUID() != p.uid {
			p.over = nil
			c.tidyLocked(key)
		}
	}
	c.term, c.begun = ctx, ctx
	context.AfterFunc(ctx, c.cut)
}

// End ends the term: all daemons are told to stop, and none is started.
func (c *Crew) End(why dsl.Stop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(why)
}

func (c *Crew) endLocked(why dsl.Stop) {
	c.term = nil
	for _, p := range c.posts {
		for _, l := range p.lives {
			l.stopLocked(why)
		}
	}
}

// cut ends the term by a loss of leadership, unless it has ended, and all that daemons of it may write: another one does
// not begin before they have ended.
func (c *Crew) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(dsl.StopLeadership)
	for _, p := range c.posts {
		for _, l := range p.lives {
			l.cut()
		}
	}
}

// Wait waits until no daemon runs. It must not be called before the term has ended.
func (c *Crew) Wait() { c.running.Wait() }

// Seen takes an event of the resource's objects.
func (c *Crew) Seen(ev watch.Event) {
	if len(c.settings.Handlers) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.posts[ev.Key]
	if p == nil {
		return
	}
	for _, l := range p.lives {
		switch {
		case ev.Kind == watch.Deleted && !ev.Unseen && ev.UID == l.uid, ev.Kind != watch.Deleted && ev.UID != l.uid:
			l.stopLocked(dsl.StopGone)
		case ev.Kind == watch.Deleted: // of another object, or of one that only a listing lacks: Gone follows when it is known to be gone
		default:
			if ev.Object.GetDeletionTimestamp() != nil {
				l.stopLocked(dsl.StopDeleted)
			}
			if !c.settings.Keys { // or the pass that reads it tells
				l.changedLocked(ev.Object.GetResourceVersion())
			}
		}
	}
}

// Gone stops the daemons of an object that is known to be gone. An empty uid stands for any.
func (c *Crew) Gone(key cache.ObjectName, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.posts[key]; p != nil {
		for _, l := range p.lives {
			if uid == "" || l.uid == uid {
				l.stopLocked(dsl.StopGone)
			}
		}
	}
}

// Tend takes what a pass sees of a key: it has daemons stop, and starts some where the pass says so.
func (c *Crew) Tend(s Sight) {
	if len(c.settings.Handlers) == 0 {
		return
	}
	for _, h := range c.settings.Handlers {
		wanted, known := false, true
		if s.UID != "" && !s.Deleting {
			wanted, known = s.Pass.Sees(h) // others' code: not with the lock
		}
		if !c.tend(s, h, wanted, known) {
			continue
		}
		var delay time.Duration
		if h.Delay != nil {
			delay = attempt.Delay(h.Delay, func() *dsl.Subject { return s.Pass.About(h) })
		}
		c.start(s, h, delay)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.posts[s.Key]; p != nil && p.uid != s.UID {
		p.uid, p.over = s.UID, nil // of an object that is gone
	}
	c.tidyLocked(s.Key)
}

// tend has a daemon stop that is not to run, and reports whether it is to be started. The pass is the only one to start
// those of its key.
func (c *Crew) tend(s Sight, h *dsl.Handler, wanted, known bool) (start bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.posts[s.Key]
	l := p.of(h)
	switch {
	case l == nil:
		return s.Starts && wanted && c.term != nil && !p.isOver(s.UID, h)
	case l.uid != s.UID:
		l.stopLocked(dsl.StopGone)
	case s.Deleting:
		l.stopLocked(dsl.StopDeleted)
	case known && !wanted:
		l.stopLocked(dsl.StopFilters)
	}
	if c.settings.Keys && l.uid == s.UID {
		l.tree = s.Object
		l.changedLocked(s.Object.GetResourceVersion())
	}
	return false
}

func (c *Crew) start(s Sight, h *dsl.Handler, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, found := c.settings.Cache.Get(s.Key)
	if c.term == nil || !found || seen.GetUID() != s.UID || seen.GetDeletionTimestamp() != nil {
		return // the next pass knows
	}
	l := newLife(c, s.Key, s.UID, h)
	l.memo = s.Pass.Memo()
	l.last, l.written, l.knows = seen, s.Object, s.Object.GetResourceVersion()
	if c.settings.Keys {
		l.tree = s.Object
	}
	p := c.posts[s.Key]
	if p == nil {
		p = &post{uid: s.UID}
		c.posts[s.Key] = p
	}
	p.lives = append(p.lives, l)
	c.running.Go(func() { l.live(delay) })
}

// Wants reports whether a daemon of an object whose filters say whether it holds is to have the finalizer: it runs, or
// is to. One that is over lets the object go.
func (c *Crew) Wants(key cache.ObjectName, uid types.UID, h *dsl.Handler, holds bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.posts[key]
	l := p.of(h)
	return l != nil && l.uid == uid && !l.late || holds && !p.isOver(uid, h)
}

// Holds reports whether the deletion of an object waits for a daemon to end.
func (c *Crew) Holds(key cache.ObjectName, uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.posts[key]; p != nil {
		for _, l := range p.lives {
			if l.uid == uid && !l.late && l.handler.Finalizes() {
				return true
			}
		}
	}
	return false
}

// of returns the daemon of a handler, nil when none runs.
func (p *post) of(h *dsl.Handler) *life {
	if p != nil {
		for _, l := range p.lives {
			if l.handler == h {
				return l
			}
		}
	}
	return nil
}

func (p *post) isOver(uid types.UID, h *dsl.Handler) bool {
	return p != nil && p.uid == uid && p.over[h]
}

// tidyLocked drops a key of which nothing is to be known.
func (c *Crew) tidyLocked(key cache.ObjectName) {
	if p := c.posts[key]; p != nil && len(p.lives) == 0 && len(p.over) == 0 {
		delete(c.posts, key)
	}
}
