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
// place that becomes free goes to the next namespace in the round. It bounds the bytes of the bodies in the process, too: a burst of large
// ones must not end the process.
type gate struct {
	bounds

	mu   sync.Mutex
	free int
	// held are the bytes of all requests. Some of them are still being read.
	held int64
	// all counts the running requests. running counts them by namespace.
	all     load
	running map[string]load
	waiting int
	queues  map[string][]*request
	round   []string // the namespaces with waiters, the next one first
}

// bounds are the limits of a gate.
type bounds struct {
	// share is how many places a namespace has at most, room how many requests may wait.
	share, room int
	// heldBytes limits all bodies in memory. runningBytes limits the bodies of running requests: a function decodes the objects of its
	// request, which then take several times as much. A namespace has at most three quarters of the running bytes. A single request may
	// exceed all of them but heldBytes.
	heldBytes, runningBytes int64
}

// load are the requests that run.
type load struct {
	requests int
	bytes    int64
}

// request is a request on its way through the gate.
type request struct {
	namespace string
	// bytes are those of the body, as far as they have been read. claimed is its Content-Length; zero if the client does not say one.
	bytes, claimed int64
	// users are the function that runs, and the one that answers. The bytes are held until both have ended.
	users int
	turn  chan error
}

// newRequest returns a request that is not read yet. Its caller calls release when it is answered.
func newRequest() *request { return &request{users: 1, turn: make(chan error, 1)} }

func newGate(atOnce int, b bounds) *gate {
	b.share = max(1, atOnce*3/4)
	return &gate{bounds: b, free: atOnce, running: map[string]load{}, queues: map[string][]*request{}}
}

// hold counts bytes that a request has read. It returns false if there are too many, and the request has to be refused. If a namespace has
// more bytes that wait than the request will have, its newest requests are refused instead.
func (g *gate) hold(r *request, bytes int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.next()
	size := max(r.bytes+bytes, r.claimed)
	for g.held+bytes > g.heldBytes {
		largest, most := "", size
		for namespace := range g.queues {
			if size := g.queued(namespace); size > most {
				largest, most = namespace, size
			}
		}
		if most == size {
			return false
		}
		g.refuse(largest)
	}
	g.held += bytes
	r.bytes += bytes
	return true
}

// queued returns the bytes of the requests of a namespace that wait.
func (g *gate) queued(namespace string) (bytes int64) {
	for _, r := range g.queues[namespace] {
		bytes += r.bytes
	}
	return bytes
}

// release ends the use of a request by the function that answers it.
func (g *gate) release(r *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unused(r)
}

func (g *gate) unused(r *request) {
	if r.users--; r.users == 0 {
		g.held -= r.bytes
		r.bytes = 0
	}
}

// enter waits until a request may run. The caller then calls leave. It returns an error if the context ends, or if too many requests wait
// and the namespace has the most of them.
func (g *gate) enter(ctx context.Context, r *request) error {
	g.line(r)
	select {
	case err := <-r.turn:
		return err
	case <-ctx.Done():
	}
	if g.forget(r) {
		return ended(ctx, busy("requests of "+named(r.namespace)))
	}
	if err := <-r.turn; err != nil { // both happened at once
		return err
	}
	g.leave(r)
	return ended(ctx, nil)
}

// line adds a request to the queue of its namespace.
func (g *gate) line(r *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queues[r.namespace]) == 0 {
		g.round = append(g.round, r.namespace)
	}
	g.queues[r.namespace] = append(g.queues[r.namespace], r)
	g.waiting++
	if g.next(); g.waiting > g.room {
		g.refuse(g.longest(r.namespace))
		g.next()
	}
}

// next gives free places to the next requests in the round. A request that is too large for now holds up those behind it, unless its
// namespace has its share: else a stream of small requests would keep it waiting.
func (g *gate) next() {
	for {
		i := slices.IndexFunc(g.round, g.hasShare)
		if i < 0 {
			return
		}
		to := g.round[i]
		r := g.queues[to][0]
		if g.free == 0 || g.all.requests > 0 && g.all.bytes+r.bytes > g.runningBytes {
			return
		}
		g.count(r, 1)
		r.users++
		g.remove(to, 0)
		if i := slices.Index(g.round, to); i >= 0 {
			g.round = append(slices.Delete(g.round, i, i+1), to)
		}
		r.turn <- nil
	}
}

// hasShare reports whether the first request of a namespace is within its share.
func (g *gate) hasShare(namespace string) bool {
	of := g.running[namespace]
	return of.requests == 0 || of.requests < g.share && of.bytes+g.queues[namespace][0].bytes <= g.runningBytes*3/4
}

// count adds a request to those that run, or, with by -1, takes it away.
func (g *gate) count(r *request, by int) {
	of, bytes := g.running[r.namespace], int64(by)*r.bytes
	g.free -= by
	g.all = load{g.all.requests + by, g.all.bytes + bytes}
	if of = (load{of.requests + by, of.bytes + bytes}); of.requests == 0 {
		delete(g.running, r.namespace)
		return
	}
	g.running[r.namespace] = of
}

// leave gives a place back, and to the next request.
func (g *gate) leave(r *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(r, -1)
	g.unused(r)
	g.next()
}

// longest returns the namespace with the longest queue. Between equals it is the one that came last.
func (g *gate) longest(last string) string {
	longest := last
	for namespace, queue := range g.queues {
		if len(queue) > len(g.queues[longest]) {
			longest = namespace
		}
	}
	return longest
}

// refuse refuses the newest request of a namespace that waits. Its memory counts as free at once.
func (g *gate) refuse(namespace string) {
	newest := len(g.queues[namespace]) - 1
	r := g.queues[namespace][newest]
	g.remove(namespace, newest)
	g.held -= r.bytes
	r.bytes = 0
	r.turn <- busy("requests of " + named(namespace))
}

// forget takes a request out of its queue. It reports false if the request has left it already.
func (g *gate) forget(r *request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[r.namespace], r)
	if i < 0 {
		return false
	}
	g.remove(r.namespace, i)
	g.next()
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
	return &refusal{code: http.StatusTooManyRequests, text: "too many or too large " + who + " wait for the webhook", result: Refused}
}
