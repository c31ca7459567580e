// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestWhatIsTakenIsThereOnce holds what a reconcile finds after what came up, and what the next one finds when the reconcile has
// dealt with it, and when it has not.
func TestWhatIsTakenIsThereOnce(t *testing.T) {
	owner := func(p *post) { p.OnEvent(p.event(watch.Added, "u", "1")) }
	tests := map[string]struct {
		come                func(p *post)
		want, handled, back []string
	}{
		"an object that appears": {owner, []string{"ADDED", "fresh"}, []string{"fresh"}, []string{"ADDED", "fresh"}},
		"one that was there": {func(p *post) {
			ev := p.event(watch.Added, "u", "1")
			ev.Initial = true
			p.OnEvent(ev)
		}, []string{"ADDED"}, nil, []string{"ADDED"}},
		"a change of a child": {func(p *post) {
			owner(p)
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"an own write to a child whose event comes later": {func(p *post) {
			owner(p)
			p.wrote("c", "5")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
		}, []string{"ADDED", "fresh"}, []string{"fresh"}, []string{"ADDED", "fresh"}},
		"or before the answer": {func(p *post) {
			owner(p)
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
			p.wrote("c", "5")
		}, []string{"ADDED", "fresh"}, []string{"fresh"}, []string{"ADDED", "fresh"}},
		"somebody else's write after it": {func(p *post) {
			owner(p)
			p.wrote("c", "5")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), false)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"somebody else's write of its version, as after a restored backup": {func(p *post) {
			owner(p)
			p.wrote("c", "5")
			ev := p.event(watch.Updated, "c", "5")
			ev.Object = p.object("c", "5", "changed")
			p.OnChildEvent(p.key, ev, false)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"what nobody looks at in a child, where the owner is ready": {func(p *post) {
			owner(p)
			p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), true)
		}, []string{"ADDED", "fresh"}, []string{"fresh"}, []string{"ADDED", "fresh"}},
		"where no pass has seen the owner": {func(p *post) {
			owner(p)
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), true)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"where a handler waits": {func(p *post) {
			owner(p)
			p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Waits, Open: []ops.Open{{Handler: "deploy", Health: ops.Waits, Reason: "waits for it"}}})
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), true)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"where the last reconcile could not be finished": {func(p *post) {
			owner(p)
			p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
			p.failed("refused")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), true)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"where something else of the child is news already": {func(p *post) {
			owner(p)
			p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), true)
			p.wrote("c", "5") // the later version is noted
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"what nobody looks at in a child, where an own write to it is yet to come": {func(p *post) {
			owner(p)
			p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
			p.wrote("c", "5")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "4"), true)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"where a listing shows a later state in its place": {func(p *post) {
			owner(p)
			p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
			p.wrote("c", "5")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), true)
		}, []string{"ADDED", "child", "fresh"}, []string{"fresh"}, []string{"ADDED", "child", "fresh"}},
		"a child with an unknown owner": {func(p *post) {
			p.OnChildEvent(p.key, p.event(watch.Added, "c", "5"), false)
		}, nil, nil, nil},
		"a right that is given": {func(p *post) {
			p.SetRejected(p.key, "deploy", true)
			p.SetRejected(p.key, "store", true)
			p.SetRejected(p.key, "store", false)
			p.Grant()
		}, []string{"granted deploy"}, nil, []string{"granted deploy"}},
		"an object that goes": {func(p *post) {
			owner(p)
			p.OnEvent(p.event(watch.Deleted, "u", "2"))
		}, []string{"ADDED", "fresh", "gone u"}, []string{"fresh"}, []string{"ADDED", "fresh"}}, // what is left is for the pass to say
	}
	for name, tt := range tests {
		for ending, want := range map[string][]string{"handled": tt.handled, "not handled": tt.back} {
			t.Run(name+", "+ending, func(t *testing.T) {
				p := newPost(t)
				tt.come(p)
				turn := p.Take(p.key)
				if diff := cmp.Diff(tt.want, taken(turn)); diff != "" {
					t.Errorf("taken (-want +got):\n%s", diff)
				}
				if ending == "handled" {
					turn.Handled()
				}
				turn.Close()
				if diff := cmp.Diff(want, taken(p.Take(p.key))); diff != "" {
					t.Errorf("taken next (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestWhatIsLeftIsThereAgain holds that a reconcile which breaks off keeps what it remembers, and the objects that are gone
// and not finalized, before those that went meanwhile.
func TestWhatIsLeftIsThereAgain(t *testing.T) {
	p := newPost(t)
	p.OnEvent(p.event(watch.Added, "one", "1"))
	p.OnEvent(p.event(watch.Deleted, "one", "2"))
	turn := p.Take(p.key)
	if !p.IsDeleting(p.key, "one") {
		t.Error("what a pass has in hand is not there")
	}
	turn.Memory, turn.Unfinalized = &remembered{"one"}, turn.Gone
	p.OnEvent(p.event(watch.Deleted, "two", "3"))
	turn.Close()
	if !p.IsDeleting(p.key, "one") {
		t.Error("what is left is not there")
	}
	next := p.Take(p.key)
	if diff := cmp.Diff([]string{"ADDED", "fresh", "gone one", "gone two", "memory"}, taken(next)); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(next.Gone[0].Object.GetUID(), next.Memory.uid); got != "oneone" {
		t.Errorf("the first that is gone, and what is remembered, are %s", got)
	}
}

// TestForget holds when a key is forgotten, and that the next object of the name is a new one all the same.
func TestForget(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(p *post)
		all       bool
	}{
		"nothing came meanwhile":      {func(*post) {}, true},
		"another object has the name": {func(p *post) { p.OnEvent(p.event(watch.Added, "next", "9")) }, false},
		"a child came":                {func(p *post) { p.OnChildEvent(p.key, p.event(watch.Added, "c", "5"), false) }, false},
		"it went once more":           {func(p *post) { p.OnEvent(p.event(watch.Deleted, "next", "9")) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.OnEvent(p.event(watch.Added, "u", "1"))
			first := p.Take(p.key)
			first.Memory = &remembered{"u"}
			first.Handled()
			first.Close()
			turn := p.Take(p.key)
			tt.meanwhile(p)
			if all := turn.Forget(); all != tt.all {
				t.Errorf("all is forgotten: %v, want %v", all, tt.all)
			}
			turn.Close()
			if next := p.Take(p.key); next.Memory != nil {
				t.Errorf("the next pass remembers %s", next.Memory.uid)
			}
		})
	}
}

// TestHowKeysStand holds how keys are counted.
func TestHowKeysStand(t *testing.T) {
	p := newPost(t)
	stands := func(want map[ops.Health]int, when string) {
		t.Helper()
		if diff := cmp.Diff(want, p.CountHealth()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	p.OnEvent(p.event(watch.Added, "u", "1"))
	stands(map[ops.Health]int{}, "before its first pass")
	for want := range 3 {
		if before := p.failed("no luck"); before != want {
			t.Errorf("%d passes failed before, want %d", before, want)
		}
	}
	stands(map[ops.Health]int{ops.Failing: 1}, "after passes that failed")
	p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
	stands(map[ops.Health]int{ops.Ready: 1}, "after one that did not")
	if before := p.failed("no luck"); before != 0 {
		t.Errorf("%d passes failed before, want none since the last that did not", before)
	}
	p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Held})
	p.failed("no luck")
	stands(map[ops.Health]int{ops.Held: 1}, "one whose deletion is held")
	turn := p.Take(p.key)
	turn.Replaced()
	turn.Close()
	stands(map[ops.Health]int{}, "when another object has the name")
}

// TestATermBeginsAgain holds that nothing of an earlier term is left, and that nothing is kept outside of one.
func TestATermBeginsAgain(t *testing.T) {
	b := New[remembered](keeper{})
	p := &post{Inbox: b, t: t, key: Key{Name: "web"}, in: queue.New("", nil, func(k Key) string { return k.Namespace })}
	p.OnEvent(p.event(watch.Added, "u", "1"))
	p.Begin(p.in)
	if got := taken(p.Take(p.key)); got != nil {
		t.Errorf("what came before a term is there: %v", got)
	}
	p.OnEvent(p.event(watch.Added, "u", "1"))
	p.End()
	p.OnEvent(p.event(watch.Updated, "u", "2"))
	p.Begin(queue.New("", nil, func(k Key) string { return k.Namespace }))
	t.Cleanup(p.End)
	if got := taken(p.Take(p.key)); got != nil {
		t.Errorf("what came in an earlier term is there: %v", got)
	}
}

// TestABatchOfAnEarlierTermStoresNothing holds that a reconcile which ends after its term leaves nothing to the next one.
func TestABatchOfAnEarlierTermStoresNothing(t *testing.T) {
	p := newPost(t)
	p.OnEvent(p.event(watch.Added, "u", "1"))
	late := p.Take(p.key)
	p.End()
	p.Begin(queue.New("", nil, func(k Key) string { return k.Namespace }))
	p.OnEvent(p.event(watch.Added, "u", "1"))
	late.Memory = &remembered{"u"}
	late.Close()
	if diff := cmp.Diff([]string{"ADDED", "fresh"}, taken(p.Take(p.key))); diff != "" {
		t.Errorf("taken in the next term (-want +got):\n%s", diff)
	}
}

// TestAKeyAtRestIsSmall holds that a key with nothing pending has no room for it, and that it has again when
// something comes.
func TestAKeyAtRestIsSmall(t *testing.T) {
	pass := func(p *post, handled bool) {
		turn := p.Take(p.key)
		if handled {
			turn.Handled()
		}
		turn.Memory = &remembered{"u"}
		p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
		turn.Close()
	}
	tests := map[string]struct {
		come func(p *post)
		room bool
	}{
		"after a pass":          {func(p *post) { pass(p, true) }, false},
		"after one that failed": {func(p *post) { p.OnEvent(p.event(watch.Updated, "u", "2")); pass(p, false) }, true},
		"one that failed several times": {func(p *post) {
			p.failed("no luck")
		}, true},
		"one that loops":          {func(p *post) { p.Suspend(p.key, time.Now().Add(time.Hour)) }, true},
		"a change of the object":  {func(p *post) { p.OnEvent(p.event(watch.Updated, "u", "2")) }, true},
		"an own write to a child": {func(p *post) { p.wrote("c", "5") }, true},
		"and its echo": {func(p *post) {
			p.wrote("c", "5")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
		}, false},
		"a listing that shows a later state than an own write": {func(p *post) {
			p.wrote("c", "5")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), true)
			pass(p, true)
		}, false},
		"an own write to a child that is gone by then": {func(p *post) {
			p.OnChildEvent(p.key, p.event(watch.Deleted, "c", "6"), false)
			p.wrote("c", "5")
			pass(p, true)
		}, false},
		"an own write to a child that somebody has changed since": {func(p *post) {
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "6"), false)
			p.wrote("c", "5")
			pass(p, true)
		}, false},
		"what a first listing has of children": {func(p *post) {
			ev := p.event(watch.Added, "c", "5")
			ev.Initial = true
			p.OnChildEvent(p.key, ev, false)
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.OnEvent(p.event(watch.Added, "u", "1"))
			pass(p, true)
			tt.come(p)
			if room := p.keys[p.key].pending != nil; room != tt.room {
				t.Errorf("there is room: %t, want %t", room, tt.room)
			}
			p.CountHealth()
			p.CountHeld()
			p.IsDeleting(p.key, "u")
			if turn := p.Take(p.key); !turn.Fresh || turn.Memory == nil {
				t.Errorf("it is new: %t, and remembered: %t", turn.Fresh, turn.Memory != nil)
			}
		})
	}
}
