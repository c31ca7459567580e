// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
)

const (
	// longRun is how long a pass has run when people are told of it: a request without an answer has
	// ended by then, or is about to.
	longRun = time.Minute
	// longRunMost is the longest pause between two lines of the log about one pass; the pauses double.
	longRunMost = time.Hour
	// longRunsNamed is how many passes a check names, the longest ones.
	longRunsNamed = 5
)

// runs knows which passes run at this moment, and which handlers within them. A pass holds a worker and
// its object's changes, so one that does not end is told to people.
type runs struct {
	// long is told of each pass that has run for long, now and then while it runs. It must not be
	// changed once a pass has begun; nil means that nobody listens.
	long func(key cache.ObjectName, one run)

	mu  sync.Mutex
	now map[cache.ObjectName]*run
	// timer looks for long passes. There is one for all, and none while nothing runs.
	timer *time.Timer
}

// run is one pass.
type run struct {
	begun time.Time
	// handler runs within the pass since entered; it is empty when none does.
	handler string
	entered time.Time
	// told is when people are told next.
	told time.Time
}

// begin notes that a pass over the key runs, and returns what notes its end. A key has one pass at a
// time.
func (r *runs) begin(key cache.ObjectName) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		r.now = map[cache.ObjectName]*run{}
	}
	now := time.Now()
	r.now[key] = &run{begun: now, told: now.Add(longRun)}
	if r.timer == nil {
		r.timer = time.AfterFunc(longRun, r.look)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.now, key)
	}
}

// enter notes that a handler runs within the key's pass, and returns what notes its end. A pass has one
// handler at a time.
func (r *runs) enter(key cache.ObjectName, handler string) (leave func()) {
	set := func(handler string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one, found := r.now[key]; found {
			one.handler, one.entered = handler, time.Now()
		}
	}
	set(handler)
	return func() { set("") }
}

// look tells of passes that have run for long, and comes again while any runs: within the time after
// which one that begins meanwhile is long.
func (r *runs) look() {
	long := map[cache.ObjectName]run{}
	r.mu.Lock()
	now := time.Now()
	wait := longRun
	for key, one := range r.now {
		if !one.told.After(now) {
			one.told = now.Add(min(now.Sub(one.begun), longRunMost))
			long[key] = *one
		}
		wait = min(wait, one.told.Sub(now))
	}
	if len(r.now) == 0 {
		r.timer = nil
	} else {
		r.timer.Reset(wait)
	}
	r.mu.Unlock()
	if r.long == nil {
		return
	}
	for key, one := range long {
		r.long(key, one)
	}
}

// list names what runs, handlers with their objects, sorted.
func (r *runs) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for key, one := range r.now {
		out = append(out, one.of(key))
	}
	slices.Sort(out)
	return out
}

// said tells people of the passes that have run for long, the longest first; it is empty when there
// are none.
func (r *runs) said() string {
	type entry struct {
		text string
		took time.Duration
	}
	var long []entry
	r.mu.Lock()
	for key, one := range r.now {
		if took := time.Since(one.begun); took >= longRun {
			long = append(long, entry{fmt.Sprintf("%s has run for %s", one.of(key), took.Truncate(time.Second)), took})
		}
	}
	r.mu.Unlock()
	slices.SortFunc(long, func(a, b entry) int { return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.text, b.text)) })
	var out []string
	for i, one := range long {
		if i == longRunsNamed {
			out = append(out, fmt.Sprintf("and %d more", len(long)-i))
			break
		}
		out = append(out, one.text)
	}
	return strings.Join(out, "; ")
}

// of names what runs.
func (one *run) of(key cache.ObjectName) string {
	if one.handler == "" {
		return "pass over " + key.String()
	}
	return one.handler + " of " + key.String()
}

// runsLong logs that a pass has run for long. Between handlers it mostly waits for the API server.
func (r *resource) runsLong(key cache.ObjectName, one run) {
	log := r.log.WithValues("namespace", key.Namespace, "name", key.Name, "since", one.begun.Format(time.RFC3339),
		"for", time.Since(one.begun).Truncate(time.Second).String())
	if one.handler != "" {
		log = log.WithValues("handler", one.handler, "handlerFor", time.Since(one.entered).Truncate(time.Second).String())
	}
	log.Info("pass has run for long; changes of its object wait for its end", dsl.LogWarning, true)
}
