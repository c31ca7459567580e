// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// TestNoDeletionIsLostWhenAnInformerIsClosed closes the informer of a namespace while the deletions of
// its objects wait to be delivered.
func TestNoDeletionIsLostWhenAnInformerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, reported := make(chan struct{}), map[types.UID]int{}
		all := []string{"a", "b", "c", "d", "e"}
		f := rigged(t, Settings{Handler: handler(func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				<-gate
				reported[ev.UID]++
			}
		})}, all...)
		synctest.Wait()
		for _, name := range all {
			f.delete(name)
		}
		synctest.Wait() // the first one is being delivered, the others wait
		closed := make(chan error)
		go func() { closed <- f.informers.open(t.Context(), nil, nil) }()
		synctest.Wait()
		close(gate)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if n := reported[types.UID(name)]; n != 1 {
				t.Errorf("the deletion of %s was reported %d times", name, n)
			}
		}
	})
}

// TestUndelivered holds that a deletion is being delivered from the moment when the cache does not have the object any
// more until the handler has returned.
func TestUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, key := make(chan struct{}), cache.ObjectName{Namespace: "team-a", Name: "a"}
		f := rigged(t, Settings{Handler: handler(func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				<-gate
			}
		})}, "a")
		synctest.Wait()
		f.delete("a")
		synctest.Wait()
		if _, found := f.Get(key); found || !f.Undelivered(key) {
			t.Errorf("the cache has it: %v; its deletion is being delivered: %v", found, f.Undelivered(key))
		}
		close(gate)
		synctest.Wait()
		if f.Undelivered(key) {
			t.Error("the deletion that was reported still counts as undelivered")
		}
	})
}

// TestADeletionIsDeliveredWhenItsHandlerHasFoundWhomItConcerns holds that those whom the handler wakes find the deletion delivered,
// though the handler has not returned yet: nothing would make them ask again.
func TestADeletionIsDeliveredWhenItsHandlerHasFoundWhomItConcerns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := cache.ObjectName{Namespace: "team-a", Name: "a"}
		var f *rig
		var before, after bool
		f = rigged(t, Settings{Handler: handler(func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				before = f.Undelivered(key)
				f.Found(cache.ObjectName{Namespace: "team-a", Name: "b"})
				before = before && f.Undelivered(key)
				f.Found(key)
				after = f.Undelivered(key)
			}
		})}, "a")
		synctest.Wait()
		f.delete("a")
		synctest.Wait()
		if !before || after {
			t.Errorf("the deletion counts as undelivered: %t before its handler has found whom it concerns, %t after", before, after)
		}
	})
}

// TestAnEventOfAnotherObjectMakesNoDeletionUndelivered holds that an object is gone for those who ask once its deletion was
// delivered, whatever else is being delivered: nothing would make them ask again.
func TestAnEventOfAnotherObjectMakesNoDeletionUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}
		f := rigged(t, Settings{Handler: handler(func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				<-gates[ev.Key.Name]
			}
		})}, "a", "b", "c")
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			f.delete(name)
			synctest.Wait()
		}
		undelivered := func() (names []string) {
			for _, name := range []string{"a", "b", "c"} {
				if f.Undelivered(cache.ObjectName{Namespace: "team-a", Name: name}) {
					names = append(names, name)
				}
			}
			return names
		}
		closed := make(chan error, 1)
		for _, step := range []struct {
			do   func()
			want []string
		}{
			{func() {}, []string{"a", "b", "c"}},
			{func() { close(gates["a"]) }, []string{"b", "c"}},
			{func() { close(gates["b"]) }, []string{"c"}},
		} {
			step.do()
			synctest.Wait()
			if diff := cmp.Diff(step.want, undelivered()); diff != "" {
				t.Errorf("the handler knows of objects (-want +got):\n%s", diff)
			}
		}
		go func() { closed <- f.informers.open(t.Context(), nil, nil) }()
		close(gates["c"])
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	})
}

// steps is a function that is called when all is listed.
type steps func(well bool)

func (s steps) Listed(_ context.Context, well bool) bool {
	s(well)
	return false
}

func (steps) Absent(context.Context) {}

// TestListedMeansThatAllIsDelivered holds that a listing counts when everything of it was delivered: the cache has it before.
func TestListedMeansThatAllIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, reported := make(chan struct{}), []string{}
		f := rigged(t, Settings{
			Handler: handler(func(ev watch.Event) {
				<-gate
				reported = append(reported, ev.Key.Name)
			}),
			Steps: steps(func(well bool) { reported = append(reported, fmt.Sprint("all, well: ", well)) }),
		}, "a", "b")
		synctest.Wait() // the cache has them, and the first one is being delivered
		if n := len(f.Objects("team-a")); n != 2 {
			t.Errorf("the cache has %d objects", n)
		}
		judged := make(chan bool)
		go func() { judged <- f.runner.judge(t.Context(), nil) }()
		synctest.Wait()
		close(gate)
		if again := <-judged; again {
			t.Error("it looks again")
		}
		if len(reported) == 3 {
			slices.Sort(reported[:2]) // a listing has no order
		}
		if diff := cmp.Diff([]string{"a", "b", "all, well: true"}, reported); diff != "" {
			t.Errorf("reported events (-want +got):\n%s", diff)
		}
	})
}

// TestFollow holds the events of an informer that takes the place of another one.
func TestFollow(t *testing.T) {
	object := func(name, uid, version string) *cached.Object {
		return held(t, map[string]any{"name": name, "uid": uid, "resourceVersion": version})
	}
	var reported []string
	on := handler(func(ev watch.Event) {
		reported = append(reported, fmt.Sprintf("%s %s initial %v unseen %v", ev.Key.Name, ev.Kind, ev.Initial, ev.Unseen))
	})
	before, now := newLedger(on, false), newLedger(on, true)
	for _, o := range []*cached.Object{
		object("same", "a", "1"), object("changed", "b", "1"), object("gone", "c", "1"), object("replaced", "d", "1"),
	} {
		before.OnEvent(watch.Event{Key: cache.MetaObjectToName(o), UID: o.GetUID(), Object: o})
	}
	reported = nil
	for _, o := range []*cached.Object{
		object("same", "a", "1"), object("changed", "b", "2"), object("new", "e", "2"), object("replaced", "f", "3"),
	} {
		now.OnEvent(watch.Event{Key: cache.MetaObjectToName(o), UID: o.GetUID(), Object: o})
	}
	if len(reported) > 0 {
		t.Errorf("a silent one reports %q", reported)
	}
	now.follow(before)
	last := reported[len(reported)-1]
	replaced := slices.DeleteFunc(slices.Clone(reported), func(text string) bool { return !strings.HasPrefix(text, "replaced") })
	now.OnEvent(watch.Event{Kind: watch.Deleted, Key: cache.ObjectName{Name: "new"}, UID: "e"})
	slices.Sort(reported)
	want := []string{
		"changed updated initial false unseen false", "gone deleted initial false unseen true",
		"new added initial false unseen false", "new deleted initial false unseen false",
		"replaced added initial false unseen false", "replaced deleted initial false unseen true", "same added initial true unseen false",
	}
	if diff := cmp.Diff(want, reported); diff != "" || last != want[1] {
		t.Errorf("last %q; reported events (-want +got):\n%s", last, diff)
	}
	if diff := cmp.Diff([]string{want[5], want[4]}, replaced); diff != "" {
		t.Errorf("events of the object that has another UID now (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"same": true, "replaced": true, "gone": false, "new": false} {
		if got := now.names(cache.ObjectName{Name: name}); got != want {
			t.Errorf("the handler knows of %s: %v", name, got)
		}
	}
}
