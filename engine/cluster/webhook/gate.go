// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// gate lets some requests run at once, in turns between namespaces. It is a fair queue: each namespace has a queue of its own, and a
// place that becomes free goes to the next namespace in the round.
type gate struct {
	// share is how many places a namespace has at most, room how many requests may wait.
	share, room int

	mu      sync.Mutex
	free    int
	running map[string]int
	waiting int
	queues  map[string][]*waiter
	round   []string // the namespaces with waiters, the next one first
}

// waiter is a request that waits.
type waiter struct{ turn chan error }

func newGate(atOnce, room int) *gate {
	return &gate{share: max(1, atOnce*3/4), room: room, free: atOnce, running: map[string]int{}, queues: map[string][]*waiter{}}
}

// enter waits until a request of a namespace may run. The caller then calls leave. It returns an error if the context ends, or if too many
// requests wait and the namespace has the most of them.
func (g *gate) enter(ctx context.Context, namespace string) error {
	w := g.line(namespace)
	if w == nil {
		return nil
	}
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
	}
	if g.forget(namespace, w) {
		return ended(ctx, busy("requests of "+named(namespace)))
	}
	if err := <-w.turn; err != nil { // both happened at once
		return err
	}
	g.leave(namespace)
	return ended(ctx, nil)
}

// line takes a place and returns nil, or returns the waiter for one.
func (g *gate) line(namespace string) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 && g.running[namespace] < g.share {
		g.take(namespace)
		return nil
	}
	w := &waiter{turn: make(chan error, 1)}
	if len(g.queues[namespace]) == 0 {
		g.round = append(g.round, namespace)
	}
	g.queues[namespace] = append(g.queues[namespace], w)
	g.waiting++
	if g.waiting > g.room {
		g.refuse(namespace)
	}
	return w
}

func (g *gate) take(namespace string) {
	g.free--
	g.running[namespace]++
}

// leave gives a place back, and to the next waiter.
func (g *gate) leave(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.running[namespace]--; g.running[namespace] == 0 {
		delete(g.running, namespace)
	}
	next := slices.IndexFunc(g.round, func(n string) bool { return g.running[n] < g.share })
	if next < 0 {
		return
	}
	to := g.round[next]
	w := g.queues[to][0]
	g.take(to)
	g.remove(to, 0)
	if i := slices.Index(g.round, to); i >= 0 {
		g.round = append(slices.Delete(g.round, i, i+1), to)
	}
	w.turn <- nil
}

// refuse refuses the newest request of the longest queue. Between equals it is that of the namespace that came last.
func (g *gate) refuse(last string) {
	longest := last
	for namespace, queue := range g.queues {
		if len(queue) > len(g.queues[longest]) {
			longest = namespace
		}
	}
	newest := len(g.queues[longest]) - 1
	w := g.queues[longest][newest]
	g.remove(longest, newest)
	w.turn <- busy("requests of " + named(longest))
}

// forget takes a waiter out of its queue. It reports false if the waiter has left it already.
func (g *gate) forget(namespace string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[namespace], w)
	if i < 0 {
		return false
	}
	g.remove(namespace, i)
	return true
}

func (g *gate) remove(namespace string, i int) {
	g.waiting--
	g.queues[namespace] = slices.Delete(g.queues[namespace], i, i+1)
	if len(g.queues[namespace]) == 0 {
		delete(g.queues, namespace)
		g.round = slices.DeleteFunc(g.round, func(n string) bool { return n == namespace })
	}
}

func named(namespace string) string {
	if namespace == "" {
		return "objects without a namespace"
	}
	return "namespace " + namespace
}

// busy is the error if too many requests wait, or one has waited too long.
func busy(who string) *refusal {
	return &refusal{code: http.StatusTooManyRequests, text: "too many " + who + " wait for the webhook", result: Refused}
}
