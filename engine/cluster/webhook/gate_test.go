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

// TestPlacesGoRoundTheNamespaces holds the order in which waiting requests get the places that become free.
func TestPlacesGoRoundTheNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10)
		if err := g.enter(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(namespace string, i int) {
			go func() {
				if err := g.enter(t.Context(), namespace); err == nil {
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
		last := "x"
		for range 6 {
			g.leave(last)
			synctest.Wait()
			last = order[len(order)-1][:1]
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
		g := newGate(1, 3)
		if err := g.enter(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var refused []string
		for _, who := range []string{"a0", "a1", "a2", "b0", "c0", "d0"} {
			go func() {
				if err := g.enter(t.Context(), who[:1]); err == nil {
					g.leave(who[:1])
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
		g.leave("x")
	})
}

// TestANamespaceHasAShareOfThePlaces holds that slow requests of one namespace do not take all places.
func TestANamespaceHasAShareOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, 10)
		for range 3 {
			if err := g.enter(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan error, 1)
		go func() { got <- g.enter(t.Context(), "a") }()
		synctest.Wait()
		if len(got) != 0 {
			t.Error("the namespace has all places")
		}
		if err := g.enter(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		g.leave("b")
		synctest.Wait()
		if len(got) != 0 {
			t.Error("the namespace got the place that another one gave back")
		}
		g.leave("a")
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// TestAWaitEndsWithItsContext holds that a request which is gone takes no place.
func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10)
		if err := g.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.enter(ctx, "a"); err == nil {
			t.Error("it has entered")
		}
		if g.waiting != 0 || slices.Contains(g.round, "a") {
			t.Errorf("it waits still: %+v", g)
		}
		g.leave("a")
		if g.free != 1 {
			t.Errorf("%d places are free", g.free)
		}
	})
}
