// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

const (
	// long is how long a reconcile runs before the log and the checks name it. A request without an answer has ended by
	// then, or is about to.
	long = time.Minute
	// pauseMost is the longest pause between two log lines about one reconcile. The pauses double.
	pauseMost = time.Hour
	// named is how many reconciles a check names, the longest ones.
	named = 5
)

// Running are the reconciles of a resource that run now, and their handlers. A reconcile holds a worker and its object's
// changes, so the log and the checks name one that does not end.
type Running struct {
	log logr.Logger

	mu  sync.Mutex
	now map[cache.ObjectName]*ongoing
	// timer looks for long reconciles. There is one for all, and none while nothing runs.
	timer *time.Timer
}

// NewRunning returns an empty set of reconciles. The log names each reconcile that runs for a minute, and again after
// pauses that double.
func NewRunning(log logr.Logger) *Running {
	return &Running{log: log, now: map[cache.ObjectName]*ongoing{}}
}

// ongoing is one reconcile.
type ongoing struct {
	begun time.Time
	// handler runs within the reconcile since entered; empty if none does.
	handler string
	entered time.Time
	// next is when the log names the reconcile next.
	next time.Time
}

// Begin notes that a reconcile over the key runs. The returned function notes its end. A key has one reconcile at a
// time.
func (p *Running) Begin(key cache.ObjectName) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.now[key] = &ongoing{begun: now, next: now.Add(long)}
	if p.timer == nil {
		p.timer = time.AfterFunc(long, p.look)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.now, key)
	}
}

// Enter notes that a handler runs within the key's reconcile. The returned function notes its end. A reconcile has one
// handler at a time.
func (p *Running) Enter(key cache.ObjectName, handler string) (leave func()) {
	set := func(handler string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if one, found := p.now[key]; found {
			one.handler, one.entered = handler, time.Now()
		}
	}
	set(handler)
	return func() { set("") }
}

// look logs the reconciles that have run for long. It runs again while any reconcile runs, in time for a reconcile that
// begins meanwhile.
func (p *Running) look() {
	late := map[cache.ObjectName]ongoing{}
	p.mu.Lock()
	now := time.Now()
	wait := long
	for key, one := range p.now {
		if !one.next.After(now) {
			one.next = now.Add(min(now.Sub(one.begun), pauseMost))
			late[key] = *one
		}
		wait = min(wait, one.next.Sub(now))
	}
	if len(p.now) == 0 {
		p.timer = nil
	} else {
		p.timer.Reset(wait)
	}
	p.mu.Unlock()
	for key, one := range late {
		p.warn(key, one)
	}
}

// List returns the names of running handlers with their objects, sorted.
func (p *Running) List() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for key, one := range p.now {
		out = append(out, one.of(key))
	}
	slices.Sort(out)
	return out
}

// Run is a reconcile that runs.
type Run struct {
	Begun time.Time
	// Handler is the running handler, since Entered; empty if none runs.
	Handler string
	Entered time.Time
}

// Of returns the reconcile that runs over a key, if one does.
func (p *Running) Of(key cache.ObjectName) (r Run, runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, runs := p.now[key]
	if runs {
		r = Run{Begun: one.begun, Handler: one.handler, Entered: one.entered}
	}
	return r, runs
}

// Long names the reconciles that have run for long, the longest first. It is empty for none.
func (p *Running) Long() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(p.now), func(a, b cache.ObjectName) int {
		return cmp.Or(p.now[a].begun.Compare(p.now[b].begun), strings.Compare(p.now[a].of(a), p.now[b].of(b)))
	})
	var out []string
	for _, key := range keys {
		if took := time.Since(p.now[key].begun); took >= long {
			out = append(out, fmt.Sprintf("%s has run for %s", p.now[key].of(key), took.Truncate(time.Second)))
		}
	}
	if more := len(out) - named; more > 0 {
		out = append(out[:named], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// of names the handler or reconcile.
func (one *ongoing) of(key cache.ObjectName) string {
	if one.handler == "" {
		return "reconcile of " + key.String()
	}
	return one.handler + " of " + key.String()
}

// warn logs that a reconcile has run for long. Between handlers it mostly waits for the API server.
func (p *Running) warn(key cache.ObjectName, one ongoing) {
	log := p.log.WithValues("namespace", key.Namespace, "name", key.Name, "since", one.begun.Format(time.RFC3339),
		"for", time.Since(one.begun).Truncate(time.Second).String())
	if one.handler != "" {
		log = log.WithValues("handler", one.handler, "handlerFor", time.Since(one.entered).Truncate(time.Second).String())
	}
	log.Info("reconcile has run for long; changes of its object wait for its end", logmark.Warning, true)
}
