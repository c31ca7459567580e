// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/reconcile/history"
)

// plenty is more room than any test needs.
const plenty = 1 << 30

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func idOf(name string) history.ID {
	return history.ID{Resource: "foos", Key: cache.ObjectName{Namespace: "default", Name: name}}
}

// transform makes objects as one cache has them: what they have in common, it holds once.
var transform = sync.OnceValues(func() (*cached.Transformer, error) {
	return new(cached.Compressor).NewTransformer(cached.Form{}, schema.GroupVersion{Group: "example.com", Version: "v1"}, logr.Discard())
})

// version is an object as a cache has it, of about so many bytes.
func version(t testing.TB, name string, number, size int) *cached.Object {
	t.Helper()
	transformer, err := transform()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := transformer.Transform(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": name, "resourceVersion": fmt.Sprint(number)},
		"spec": map[string]any{"text": noise(number, size)},
	}})
	return out.(*cached.Object)
}

// noise is a text that does not get smaller when a cache packs it.
func noise(seed, size int) string {
	from := rand.New(rand.NewPCG(uint64(seed), 0))
	out := make([]byte, size)
	for i := range out {
		out[i] = byte('!' + from.IntN(90))
	}
	return string(out)
}

// ran keeps a reconcile in which a handler has run for the number-th time.
func ran(s *history.Store, name string, number int, v *cached.Object) {
	r := s.Record()
	r.Attempt(history.Attempt{Handler: "app", Cause: "update", Number: number, Outcome: "success"})
	s.Keep(idOf(name), history.Moment{At: start.Add(time.Duration(number) * time.Second)}, r, v)
}

// waited keeps a reconcile in which the handler had to wait.
func waited(s *history.Store, name string, number int) {
	r := s.Record()
	r.Skip(history.Skip{Handler: "app", Cause: "update", Reason: "BackOff"})
	s.Keep(idOf(name), history.Moment{At: start.Add(time.Duration(number) * time.Second)}, r, nil)
}

// numbers are those of the attempts that are kept of an object.
func numbers(s *history.Store, name string) (out []int) {
	for _, p := range s.Of(idOf(name)) {
		for _, a := range p.Attempts {
			out = append(out, a.Number)
		}
	}
	return out
}

func TestAPassIsReadAsItWasKept(t *testing.T) {
	s := history.New(plenty)
	r := s.Record()
	r.Woken("the object changed")
	r.Woken("a child changed")
	r.Wrote()
	r.Attempt(history.Attempt{Handler: "app", Cause: "update", Number: 3, Outcome: "retry", Err: "no route", Took: 20 * time.Millisecond})
	r.Attempt(history.Attempt{Handler: "status", Cause: "update", Number: 1, Outcome: "success"})
	r.Skip(history.Skip{Handler: "late", Cause: "create", Reason: "Blocked", Detail: "app"})
	r.Err(errors.New("conflict"))
	when := history.Moment{At: start, Took: time.Second, Due: start.Add(time.Minute)}
	v := version(t, "web", 7, 10)
	s.Keep(idOf("web"), when, r, v)
	want := []history.Reconcile{{
		Moment: when, Woken: []string{"the object changed", "a child changed"}, Wrote: true, Err: "conflict", Version: v,
		Attempts: []history.Attempt{
			{Handler: "app", Cause: "update", Number: 3, Outcome: "retry", Err: "no route", Took: 20 * time.Millisecond},
			{Handler: "status", Cause: "update", Number: 1, Outcome: "success"},
		},
		Skips: []history.Skip{{Handler: "late", Cause: "create", Reason: "Blocked", Detail: "app"}},
	}}
	if diff := cmp.Diff(want, s.Of(idOf("web")), cmp.Comparer(func(a, b *cached.Object) bool { return a == b })); diff != "" {
		t.Errorf("reconciles (-want +got):\n%s", diff)
	}
}

func TestPassesWithoutAnAttemptThatAreAlikeAreCounted(t *testing.T) {
	s := history.New(plenty)
	ran(s, "web", 1, nil)
	for n := 2; n < 100; n++ {
		waited(s, "web", n)
	}
	ran(s, "web", 100, nil)
	var got []string
	for _, p := range s.Of(idOf("web")) {
		got = append(got, fmt.Sprint(len(p.Attempts), " ran, ", p.More, " more, until ", p.Latest.Sub(start) > 0 && p.Latest.Equal(start.Add(99*time.Second))))
	}
	want := []string{"1 ran, 0 more, until false", "0 ran, 97 more, until true", "1 ran, 0 more, until false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reconciles (-want +got):\n%s", diff)
	}
}

func TestTheLastTwentyPassesOfAnObjectAreKept(t *testing.T) {
	s := history.New(plenty)
	var want []int
	for n := 1; n <= 50; n++ {
		ran(s, "web", n, version(t, "web", n, 10))
		if n > 30 {
			want = append(want, n)
		}
	}
	if diff := cmp.Diff(want, numbers(s, "web")); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got := s.Of(idOf("web"))[0].Version.GetResourceVersion(); got != "31" {
		t.Errorf("the first reconcile has version %s, want 31", got)
	}
}

func TestTheOldestPassesGoFirstWhicheverObjectTheyAreOf(t *testing.T) {
	s := history.New(2000)
	for n := 1; n <= 40; n++ {
		ran(s, []string{"a", "b", "c"}[n%3], n, nil)
		if held, _ := s.Held(); held > 2000 {
			t.Fatalf("after reconcile %d, %d bytes are held, want at most 2000", n, held)
		}
	}
	var all []int
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, numbers(s, name)...)
	}
	least := 40
	for _, n := range all {
		least = min(least, n)
	}
	if len(all) != 40-least+1 || len(all) < 5 {
		t.Errorf("the attempts %v are kept, want the last ones without a gap", all)
	}
}

func TestVersionsTakeHalfOfTheRoom(t *testing.T) {
	const most = 100_000
	s := history.New(most)
	for n := range 2000 {
		ran(s, fmt.Sprint("foo-", n%100), n, version(t, "foo", n, 1000))
	}
	_, reconciles := s.Held()
	with := 0
	for n := range 100 {
		for _, p := range s.Of(idOf(fmt.Sprint("foo-", n))) {
			if p.Version != nil {
				with++
			}
		}
	}
	if with == 0 || with >= reconciles/2 {
		t.Errorf("%d of %d reconciles have a version, want a few", with, reconciles)
	}
	if last := s.Of(idOf("foo-99")); last[len(last)-1].Version == nil {
		t.Error("the last reconcile has no version")
	}
}

func TestOneObjectTakesNoMoreThanItsShare(t *testing.T) {
	for name, tt := range map[string]struct{ size, want int }{
		"a small object has all versions":                  {100, 20},
		"a larger one has the last ones":                   {5000, 3},
		"one that is larger than its share has none":       {30_000, 0},
		"one that is larger than all of the room, neither": {2_000_000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := history.New(1_000_000)
			ran(s, "other", 1, version(t, "other", 1, 10))
			for n := range 30 {
				ran(s, "web", n, version(t, "web", n, tt.size))
			}
			with := 0
			for i, p := range s.Of(idOf("web")) {
				if p.Version != nil {
					with++
				} else if with > 0 {
					t.Errorf("reconcile %d has no version, and an older one has", i)
				}
			}
			if with != tt.want {
				t.Errorf("%d versions are kept, want %d", with, tt.want)
			}
			if s.Of(idOf("other"))[0].Version == nil {
				t.Error("another object has lost its version")
			}
			if got := len(s.Of(idOf("web"))); got != 20 {
				t.Errorf("%d reconciles are kept, want 20", got)
			}
		})
	}
}

func TestWhatIsForgottenTakesNoRoom(t *testing.T) {
	for name, forget := range map[string]func(*history.Store){
		"objects that are gone": func(s *history.Store) {
			for n := range 10 {
				s.Forget(idOf(fmt.Sprint("foo-", n)))
			}
		},
		"all objects of a resource": func(s *history.Store) { s.Clear("foos") },
	} {
		t.Run(name, func(t *testing.T) {
			s := history.New(plenty)
			for n := range 100 {
				ran(s, fmt.Sprint("foo-", n%10), n, version(t, "foo", n, 100))
			}
			forget(s)
			if held, reconciles := s.Held(); held != 0 || reconciles != 0 {
				t.Errorf("%d bytes of %d reconciles are held, want none", held, reconciles)
			}
		})
	}
}

func TestAStoreWithoutRoomKeepsNothing(t *testing.T) {
	s := history.New(0)
	ran(s, "web", 1, nil)
	if got := s.Of(idOf("web")); len(got) > 0 {
		t.Errorf("reconciles %v are kept", got)
	}
}

// TestTheBoundHolds keeps random reconciles and compares what is counted with what is there.
func TestTheBoundHolds(t *testing.T) {
	s := history.New(50_000)
	for n := range 20_000 {
		name := fmt.Sprint("foo-", n*n%97)
		switch {
		case n%11 == 0:
			waited(s, name, n)
		case n%501 == 0:
			s.Forget(idOf(name))
		default:
			ran(s, name, n, version(t, "foo", n, n%300))
		}
		if held, _ := s.Held(); held > 50_000 {
			t.Fatalf("after reconcile %d, %d bytes are held", n, held)
		}
	}
	_, reconciles := s.Held()
	there := 0
	for n := range 97 {
		there += len(s.Of(idOf(fmt.Sprint("foo-", n))))
	}
	if there != reconciles || reconciles < 20 {
		t.Errorf("%d reconciles are there, and %d are counted", there, reconciles)
	}
	s.Clear("foos")
	held, _ := s.Held()
	if held != 0 {
		t.Errorf("%d bytes are held at the end, want 0", held)
	}
}
