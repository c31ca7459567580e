// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// room returns bounds with a number of requests that may wait, and more bytes than they have.
func room(waiting int) bounds {
	return bounds{room: waiting, heldBytes: 1 << 20, runningBytes: 1 << 20}
}

// in returns a request of a namespace with so many bytes.
func in(namespace string, bytes int64) *request {
	r := newRequest()
	r.namespace, r.bytes = namespace, bytes
	return r
}

// TestPlacesGoRoundTheNamespaces holds the order in which waiting requests get the places that become free.
func TestPlacesGoRoundTheNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, room(10))
		last := in("x", 0)
		if err := g.enter(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(namespace string, i int) {
			go func() {
				r := in(namespace, 0)
				if err := g.enter(t.Context(), r); err == nil {
					last = r
					order = append(order, fmt.Sprint(namespace, i))
				}
			}()
			synctest.Wait()
		}
		for i := range 3 {
			wait("a", i)
		}
		wait("b", 0)
		wait("c", 0)
		wait("b", 1)
		for range 6 {
			g.leave(last)
			synctest.Wait()
		}
		if want := []string{"a0", "b0", "c0", "a1", "b1", "a2"}; !cmp.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		g.leave(last)
		if g.free != 1 || g.waiting != 0 || len(g.running)+len(g.queues)+len(g.round) != 0 {
			t.Errorf("what is left: %+v", g)
		}
	})
}

// TestTheLongestQueueIsRefused holds who is refused if too many wait: the newest request of the namespace that has the most.
func TestTheLongestQueueIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, room(3))
		first := in("x", 0)
		if err := g.enter(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var refused []string
		for _, who := range []string{"a0", "a1", "a2", "b0", "c0", "d0"} {
			go func() {
				r := in(who[:1], 0)
				if err := g.enter(t.Context(), r); err == nil {
					g.leave(r)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, who)
			}()
			synctest.Wait()
		}
		if want := []string{"a2", "a1", "d0"}; !cmp.Equal(refused, want) {
			t.Errorf("refused %v, want %v", refused, want)
		}
		g.leave(first)
	})
}

// TestANamespaceHasAShareOfThePlaces holds that slow requests of one namespace do not take all places.
func TestANamespaceHasAShareOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, room(10))
		a, b := in("a", 0), in("b", 0)
		for range 3 {
			if err := g.enter(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan error, 1)
		go func() { got <- g.enter(t.Context(), in("a", 0)) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Error("the namespace has all places")
		}
		if err := g.enter(t.Context(), b); err != nil {
			t.Error(err)
		}
		g.leave(b)
		synctest.Wait()
		if len(got) != 0 {
			t.Error("the namespace got the place that another one gave back")
		}
		g.leave(a)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// TestAWaitEndsWithItsContext holds that a request which is gone takes no place.
func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, room(10))
		a := in("a", 0)
		if err := g.enter(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.enter(ctx, in("a", 0)); err == nil {
			t.Error("it has entered")
		}
		if g.waiting != 0 || slices.Contains(g.round, "a") {
			t.Errorf("it waits still: %+v", g)
		}
		g.leave(a)
		if g.free != 1 {
			t.Errorf("%d places are free", g.free)
		}
	})
}

// TestBytesOfRequestsAreBounded holds the sum of bodies, which requests are refused if there are more, and that all bytes come back.
func TestBytesOfRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, bounds{room: 100, heldBytes: 100, runningBytes: 50})
		var mu sync.Mutex
		var got []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, what)
		}
		enter := func(who string, bytes int64) *request {
			r := in(who[:1], 0)
			switch {
			case !g.hold(r, bytes/2) || !g.hold(r, bytes-bytes/2):
				note(who + " is refused at once")
				g.release(r)
			default:
				go func() {
					if err := g.enter(t.Context(), r); err != nil {
						note(who + " is refused")
					} else {
						note(who + " runs")
					}
				}()
			}
			synctest.Wait()
			return r
		}
		first := enter("a1", 40)
		enter("b1", 20)
		enter("b2", 20)
		enter("c1", 20)
		enter("d1", 20) // b has more that waits
		enter("e1", 70)
		if want := []string{"a1 runs", "b2 is refused", "e1 is refused at once"}; !cmp.Equal(got, want) {
			t.Errorf("what came: %v, want %v", got, want)
		}
		if g.held > 100 {
			t.Errorf("%d bytes are held", g.held)
		}
		before := g.held
		g.leave(first)
		if g.held != before {
			t.Error("the bytes of a request without an answer are free")
		}
		g.release(first)
		if g.held != before-40 {
			t.Errorf("%d bytes are held after the answer, and %d before", g.held, before)
		}
	})
}

// TestALargeRequestHasItsTurn holds that small requests do not keep a large one waiting, nor a large one the namespaces whose turn comes
// before.
func TestALargeRequestHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(100, bounds{room: 100, heldBytes: 1000, runningBytes: 100})
		var order []string
		enter := func(namespace string, bytes int64) *request {
			r := in(namespace, bytes)
			go func() {
				if err := g.enter(t.Context(), r); err == nil {
					order = append(order, namespace)
				}
			}()
			synctest.Wait()
			return r
		}
		a := enter("a", 60)
		again := enter("a", 60) // above the share of a, so it holds up nobody
		b := enter("b", 30)
		large := enter("large", 100) // alone it may run, above its share
		enter("c", 1)
		if want := []string{"a", "b"}; !cmp.Equal(order, want) {
			t.Fatalf("order %v, want %v", order, want)
		}
		for _, r := range []*request{b, a, again, large} {
			g.leave(r)
			synctest.Wait()
		}
		if want := []string{"a", "b", "a", "large", "c"}; !cmp.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// TestTheBeginningOfALargeBodyRefusesNobody holds that small requests that wait are not refused for a large one of which little has come,
// while other large ones have all bytes: it would be refused later anyway.
func TestTheBeginningOfALargeBodyRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, bounds{room: 100, heldBytes: 100, runningBytes: 50})
		enter := func(namespace string, bytes int64) (request *request, err chan error) {
			r, out := in(namespace, 0), make(chan error, 1)
			if !g.hold(r, bytes) {
				t.Fatalf("%d bytes of %s are refused", bytes, namespace)
			}
			go func() { out <- g.enter(t.Context(), r) }()
			synctest.Wait()
			return r, out
		}
		runs, _ := enter("x", 30)
		var shop []chan error
		for range 3 {
			_, err := enter("shop", 5)
			shop = append(shop, err)
		}
		reading, next := newRequest(), newRequest()
		reading.claimed, next.claimed = 80, 80
		if !g.hold(reading, 55) || g.hold(next, 1) {
			t.Error("the request with the bytes beyond the bound is not refused")
		}
		synctest.Wait()
		for _, err := range shop {
			if len(err) > 0 {
				t.Errorf("a small request that waits: %v", <-err)
			}
		}
		g.release(reading)
		g.leave(runs)
	})
}
