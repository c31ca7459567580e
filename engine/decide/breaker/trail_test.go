// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// trail plays passes. Versions of other objects wake a reconcile, and it writes its object once.
type trail struct {
	*Trail
	n int
}

func (t *trail) walk(object types.UID, woken ...Version) *Walk {
	return t.Begin(Subject{UID: object, Resource: "foos.v1", Key: types.NamespacedName{Namespace: "default", Name: string(object)}, Woken: woken})
}

// write plays a reconcile of the handler h.
func (t *trail) write(object types.UID, woken ...Version) (Version, Wake) {
	w := t.walk(object, woken...)
	v := t.next(object)
	written := w.Writing(object, "h")
	w.Wrote(v)
	written()
	return v, w.Wake([]string{"h"})
}

// next is the next version of an object.
func (t *trail) next(object types.UID) Version {
	t.n++
	return Version{UID: object, Text: fmt.Sprint(t.n)}
}

// TestWhatPacesAPass holds whose events are a pace, and what ring is seen.
func TestWhatPacesAPass(t *testing.T) {
	const ab = "[foos.v1 default/a (h) foos.v1 default/b (h)]"
	// ring plays a and b, which follow each other, until a is woken for the nth time.
	ring := func(t *trail, n int) Version {
		_, b := Version{}, t.next("b")
		for range n {
			a, _ := t.write("a", b)
			b, _ = t.write("b", a)
		}
		return b
	}
	// hub plays many objects that follow a in turn. After each of them a follows it. All of that is done the given times.
	hub := func(t *trail, objects, times int) (v Version) {
		v = t.next("x")
		for range times {
			for i := range objects {
				a, _ := t.write("a", v)
				v, _ = t.write(types.UID(fmt.Sprint("o", i)), a)
			}
		}
		return v
	}
	hubRing := func(objects int) string {
		return fmt.Sprintf("[foos.v1 default/a (h) foos.v1 default/o%d (h)]", objects-1)
	}
	tests := map[string]struct {
		woken func(t *trail) []Version
		paced bool
		ring  string
	}{
		"nothing":                                        {func(*trail) []Version { return nil }, false, "[]"},
		"what somebody else wrote":                       {func(t *trail) []Version { return []Version{t.next("b")} }, true, "[]"},
		"the end of an object":                           {func(*trail) []Version { return []Version{{UID: "b"}} }, false, "[]"},
		"an object that does not follow":                 {func(t *trail) []Version { b, _ := t.write("b"); return []Version{b} }, true, "[]"},
		"one that has followed once":                     {func(t *trail) []Version { return []Version{ring(t, 1)} }, true, ab},
		"one that follows":                               {func(t *trail) []Version { return []Version{ring(t, 2)} }, false, ab},
		"one that follows, and what somebody else wrote": {func(t *trail) []Version { return []Version{ring(t, 2), t.next("c")} }, true, ab},
		"one that follows, and one that does not":        {func(t *trail) []Version { c, _ := t.write("c"); return []Version{c, ring(t, 2)} }, true, ab},
		"what a pass of its own wrote":                   {func(t *trail) []Version { w := t.walk("a"); w.Wrote(Version{"c", "1"}); return []Version{{"c", "1"}} }, false, "[]"},
		"one that wrote because a time had come": {func(t *trail) []Version {
			a, _ := t.write("a", ring(t, 2))
			w := t.walk("b", a)
			b := t.next("b")
			w.Wrote(b)
			w.Alone()
			return []Version{b}
		}, true, "[]"},
		"one whose answer has not come": {func(t *trail) []Version {
			a, _ := t.write("a", ring(t, 2))
			w := t.walk("b", a)
			w.Writing("b", "h")
			return []Version{t.next("b")}
		}, false, ab},
		"one that was seen before its event came": {func(t *trail) []Version {
			b := ring(t, 2)
			a, _ := t.write("a", b)
			w := t.Begin(Subject{UID: "b", Resource: "foos.v1", Key: types.NamespacedName{Namespace: "default", Name: "b"}, Own: b})
			w.Writing("b", "h")
			w.Wrote(t.next("b"))
			return []Version{a, {"b", fmt.Sprint(t.n)}}
		}, false, ab},
		"one that another one writes to meanwhile": {func(t *trail) []Version {
			a, _ := t.write("a", ring(t, 2))
			t.walk("b", a).Writing("b", "h")
			t.walk("c").Writing("b", "h")()
			return []Version{t.next("b")}
		}, false, ab},
		"one that was woken before the answer came": {func(t *trail) []Version {
			b := ring(t, 1)
			w, a := t.walk("a", b), t.next("a")
			next, _ := t.write("b", a)
			w.Wrote(a)
			w.Wake([]string{"h"})
			return []Version{next}
		}, false, ab},
		"a ring of more objects than are known": {func(t *trail) []Version {
			v := t.next("o")
			for range 2 {
				v, _ = t.write("a", v)
				for i := range 2 * longest {
					v, _ = t.write(types.UID(fmt.Sprint("o", i)), v)
				}
			}
			return []Version{v}
		}, false, "[]"},
		"the last one of many that follow each other": {func(t *trail) []Version {
			v := t.next("o")
			for i := range 4 * longest {
				v, _ = t.write(types.UID(fmt.Sprint("o", i)), v)
			}
			return []Version{v}
		}, true, "[]"},
		"one of many that follow it, for the first time": {func(t *trail) []Version { return []Version{hub(t, 400, 1)} }, true, hubRing(400)},
		"one of many that follow it and write three times until they rest": {func(t *trail) []Version {
			return []Version{hub(t, 400, 3)}
		}, true, hubRing(400)},
		"one of many that follow it, and not for what its passes wrote": {func(t *trail) []Version {
			_ = hub(t, 40, 8)
			b, _ := t.write("b", t.next("a"))
			return []Version{b}
		}, true, "[]"},
		"one of many that follow it again and again":   {func(t *trail) []Version { return []Version{hub(t, 40, 10)} }, false, hubRing(40)},
		"one of very many that follow it all the time": {func(t *trail) []Version { return []Version{hub(t, kept+1, 18)} }, false, hubRing(kept + 1)},
		"an object that it made after another one that it made": {func(t *trail) []Version {
			v := t.next("b")
			for i := range 3 {
				w, made := t.walk("a", v), t.next(types.UID(fmt.Sprint("o", i)))
				w.Made(made)
				w.Wake([]string{"h"})
				o := t.Begin(Subject{UID: made.UID, Resource: "foos.v1", Key: types.NamespacedName{Namespace: "default", Name: string(made.UID)}, Own: made})
				v = t.next(made.UID)
				o.Wrote(v)
				o.Wake([]string{"h"})
			}
			return []Version{v}
		}, false, "[foos.v1 default/a (h) foos.v1 default/o2 (h)]"},
		"a ring of more objects than are named": {func(t *trail) []Version {
			v := t.next("a")
			for range 2 {
				v, _ = t.write("a", v)
				for i := range named + 1 {
					v, _ = t.write(types.UID(fmt.Sprint("o", i)), v)
				}
			}
			return []Version{v}
		}, false, "[foos.v1 default/a (h) foos.v1 default/o0 (h) foos.v1 default/o1 (h) foos.v1 default/o2 (h) foos.v1 default/o3 (h) foos.v1 default/o4 (h) foos.v1 default/o5 (h) foos.v1 default/o6 (h) 2 more]"},
		"two that wait for each other's answer": {func(t *trail) []Version {
			b, c := t.walk("b", Version{"c", "x"}), t.walk("c", Version{"b", "y"})
			b.Writing("b")
			c.Writing("c")
			return []Version{{"b", "z"}}
		}, true, "[]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x := &trail{Trail: NewTrail()}
			_, got := x.write("a", tt.woken(x)...)
			if ring := fmt.Sprint(got.Ring); got.Paced != tt.paced || ring != tt.ring {
				t.Errorf("paced: %v, want %v; ring %s, want %s", got.Paced, tt.paced, ring, tt.ring)
			}
		})
	}
}

// TestATrailDoesNotGrow holds that a ring which the breaker leaves alone, because it goes on slowly, needs no more memory with
// each round.
func TestATrailDoesNotGrow(t *testing.T) {
	for _, objects := range []int{1, 2, 3, longest - 1, longest + 1, 3 * longest} {
		x := &trail{Trail: NewTrail()}
		v := x.next("o0")
		for i := range 10_000 {
			v, _ = x.write(types.UID(fmt.Sprint("o", i%objects)), v)
		}
		known := map[*step]bool{}
		for _, one := range x.written {
			for s := one.by; s != nil && !known[s]; s = s.before {
				known[s] = true
			}
		}
		if most := kept + 2*longest; len(known) > most {
			t.Errorf("%d objects: it knows %d passes, want %d at most", objects, len(known), most)
		}
	}
}

// TestManyPassesUseATrailAtOnce is for the race detector: workers write, and find out what woke them, at the same time.
func TestManyPassesUseATrailAtOnce(t *testing.T) {
	x := NewTrail()
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for i := range 300 {
				uid, other := types.UID(fmt.Sprint(worker)), types.UID(fmt.Sprint((worker+i)%8))
				w := x.Begin(Subject{UID: uid, Woken: []Version{{other, fmt.Sprint(i - 1)}}})
				var writes sync.WaitGroup
				for _, handler := range []string{"g", "h"} {
					writes.Go(func() {
						defer w.Writing(uid, handler)()
						w.Wrote(Version{uid, fmt.Sprint(i)})
					})
				}
				_ = w.Outside()
				writes.Wait()
				_ = w.Wake([]string{"g", "h"}).Ring
			}
		})
	}
	running.Wait()
	if len(x.writing) > 0 {
		t.Errorf("%d requests are under way still", len(x.writing))
	}
}

// TestWhoIsOutside holds whose writes are from outside.
func TestWhoIsOutside(t *testing.T) {
	x := &trail{Trail: NewTrail()}
	ours, _ := x.write("a")
	for name, tt := range map[string]struct {
		own   Version
		woken []Version
		want  bool
	}{
		"nothing":                               {},
		"the object, as this process wrote it":  {own: ours},
		"the object, as somebody else wrote it": {own: x.next("a"), want: true},
		"another object, as somebody else did":  {woken: []Version{x.next("b")}, want: true},
		"the end of another object":             {woken: []Version{{UID: "b"}}, want: true},
		"another object, as this process did":   {woken: []Version{ours}},
	} {
		if got := x.Begin(Subject{UID: "a", Own: tt.own, Woken: tt.woken}).Outside(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestWhatGoesOn holds how long passes go on with what woke one.
func TestWhatGoesOn(t *testing.T) {
	b := []Version{{"b", "1"}}
	w := Woken{}.Next(b)
	for range carried {
		if w = w.Next(nil); !cmp.Equal(w.Versions, b) {
			t.Fatalf("it is %v", w)
		}
	}
	if w = w.Next(nil); w.Versions != nil {
		t.Errorf("it does not end: %v", w)
	}
	if w = w.Next(b); !cmp.Equal(w.Versions, b) {
		t.Errorf("after something new it is %v", w)
	}
}
