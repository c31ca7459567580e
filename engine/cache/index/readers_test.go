// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
)

// bench is a set with two indexes that tests fill, and one resource's readers.
type bench struct {
	*Set
	readers *Readers
	looked  map[cache.ObjectName]bool
	unread  error
}

func newBench() *bench {
	b := &bench{Set: &Set{}, looked: map[cache.ObjectName]bool{}}
	for _, name := range []string{"x", "y"} {
		b.all = append(b.all, &one{
			IndexSpec: &dsl.IndexSpec{Name: name}, values: newIndex(), feed: source.New(source.Cluster{}, source.Settings{}), cache: b,
		})
	}
	b.readers = b.Readers(b)
	return b
}

func (b *bench) Complete() error { return b.unread }

func (b *bench) OnIndexEvent(owner cache.ObjectName, _ breaker.Version) { b.looked[owner] = true }

func ownerOf(i int) cache.ObjectName {
	return cache.ObjectName{Namespace: "default", Name: fmt.Sprint("o-", i)}
}

// put puts what an object has into an index.
func (b *bench) put(at int, object, key, value string) {
	var entries []Entry
	if key != "" {
		k, _ := keyOf(key)
		entries = []Entry{{Key: k, Value: value}}
	}
	b.all[at].look(b.all[at].values.Put(types.NamespacedName{Name: object}, entries), breaker.Version{})
}

// pass is one over an owner, whose handler h reads; it returns whether what h read before has changed.
func (b *bench) pass(t testing.TB, owner cache.ObjectName, first bool, read func(dsl.Indexes)) (changed bool) {
	t.Helper()
	v := b.readers.View(owner, first, true)
	v.Refresh()
	changed = v.Changed("h")
	if read != nil {
		read(v.For("h", ""))
	}
	v.Keep(true)
	return changed
}

// keyed reads some keys of an index.
func keyed(t testing.TB, name string, keys ...string) func(dsl.Indexes) {
	return func(all dsl.Indexes) {
		reader, err := all.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if _, err := reader.Get(key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// left is how much is held of readers.
func (b *bench) left() (n int) {
	for _, x := range b.all {
		n += x.readers.Size()
		x.readers.EachFailed(func(reader) { n++ })
	}
	return n + len(b.readers.of)
}

// TestWhoIsLookedAt holds, through many reconciles and changes, that those are looked at who have read what changed, and
// no others; that a reconcile finds a change exactly where values are not as they were; and that nothing is left of readers
// that are gone.
func TestWhoIsLookedAt(t *testing.T) {
	type wants struct {
		index int
		key   string
	}
	for seed := range uint64(30) {
		r, b := rand.New(rand.NewPCG(seed, 1)), newBench()
		seen := map[cache.ObjectName]map[wants]string{}
		keys := []string{"a", "b", "c", "d"}
		values := func(w wants) string {
			k, _ := keyOf(w.key)
			found, _ := b.all[w.index].values.Get(k)
			return fmt.Sprint(found)
		}
		for step := range 300 {
			if r.IntN(2) == 0 {
				before := map[wants]string{}
				for i := range b.all {
					for _, key := range keys {
						before[wants{i, key}] = values(wants{i, key})
					}
				}
				clear(b.looked)
				key := append(keys, "")[r.IntN(5)]
				b.put(r.IntN(2), fmt.Sprint("object-", r.IntN(4)), key, fmt.Sprint(r.IntN(2)))
				want := map[cache.ObjectName]bool{}
				for owner, all := range seen {
					for w := range all {
						if before[w] != values(w) {
							want[owner] = true
						}
					}
				}
				if diff := cmp.Diff(want, b.looked, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("seed %d, step %d: looked at (-want +got):\n%s", seed, step, diff)
				}
				continue
			}
			owner := ownerOf(r.IntN(5))
			if r.IntN(8) == 0 {
				b.readers.Forget(owner)
				delete(seen, owner)
				continue
			}
			want := false
			for w, was := range seen[owner] {
				want = want || was != values(w)
			}
			at, some := r.IntN(2), keys[:r.IntN(4)]
			if got := b.pass(t, owner, false, keyed(t, b.all[at].Name, some...)); got != want {
				t.Fatalf("seed %d, step %d: a change was found: %v, want %v", seed, step, got, want)
			}
			seen[owner] = map[wants]string{}
			for _, key := range some {
				seen[owner][wants{at, key}] = values(wants{at, key})
			}
		}
		for owner := range maps.Clone(seen) {
			b.readers.Forget(owner)
		}
		if n := b.left(); n > 0 {
			t.Errorf("seed %d: %d things are held of readers that are gone", seed, n)
		}
	}
}

// TestWhatIsReadMeanwhile holds what counts of what is read around a reconcile.
func TestWhatIsReadMeanwhile(t *testing.T) {
	owner := ownerOf(1)
	tests := map[string]func(t *testing.T, b *bench){
		"a pass sees what it saw first": func(t *testing.T, b *bench) {
			v := b.readers.View(owner, false, true)
			reader, _ := v.For("h", "").Open("x")
			if has, err := reader.Has("a"); has || err != nil {
				t.Fatal(has, err)
			}
			b.put(0, "o", "a", "1")
			if has, _ := reader.Has("a"); has || !b.looked[owner] {
				t.Errorf("it sees a change: %v; it is looked at again: %v", has, b.looked[owner])
			}
			v.Keep(true)
			if !b.pass(t, owner, false, nil) {
				t.Error("the next pass finds no change")
			}
		},
		"a change is reported until a pass is through": func(t *testing.T, b *bench) {
			b.pass(t, owner, false, keyed(t, "x", "a"))
			b.put(0, "o", "a", "1")
			v := b.readers.View(owner, false, true)
			v.Refresh()
			v.Keep(false)
			if !b.pass(t, owner, false, nil) || b.pass(t, owner, false, nil) {
				t.Error("a change is not reported once more, or again after that")
			}
		},
		"what a handler read in a pass that broke off counts": func(t *testing.T, b *bench) {
			v := b.readers.View(owner, false, true)
			v.Refresh()
			keyed(t, "x", "a")(v.For("h", ""))
			v.Keep(false)
			b.put(0, "o", "a", "1")
			if !b.looked[owner] || !b.pass(t, owner, false, nil) {
				t.Error("no reader is woken")
			}
		},
		"a handler's filter counts for itself, by causes": func(t *testing.T, b *bench) {
			v := b.readers.View(owner, false, true)
			keyed(t, "x", "a")(v.For("h", dsl.Create))
			keyed(t, "x", "b")(v.For("h", dsl.Update))
			v.Keep(true)
			b.pass(t, owner, false, keyed(t, "x", "c"))
			for _, key := range []string{"a", "b", "c"} {
				b.put(0, "o-"+key, key, "1")
				if !b.pass(t, owner, false, nil) {
					t.Errorf("no change of %s is found", key)
				}
			}
		},
		"another handler is not concerned": func(t *testing.T, b *bench) {
			b.pass(t, owner, false, keyed(t, "x", "a"))
			b.put(0, "o", "a", "1")
			v := b.readers.View(owner, false, true)
			if v.Refresh(); v.Changed("other") {
				t.Error("it is")
			}
		},
		"the object of a name is not the one before it": func(t *testing.T, b *bench) {
			b.pass(t, owner, false, keyed(t, "x", "a"))
			b.put(0, "o", "a", "1")
			if b.pass(t, owner, true, nil) || b.left() > 0 {
				t.Error("what another one has read counts")
			}
		},
		"which keys there are": func(t *testing.T, b *bench) {
			read := func(all dsl.Indexes) {
				reader, _ := all.Open("x")
				reader.Keys()
			}
			b.pass(t, owner, false, read)
			b.put(0, "o", "a", "1")
			if !b.looked[owner] || !b.pass(t, owner, false, nil) {
				t.Error("a new key wakes no reader")
			}
			clear(b.looked)
			b.put(0, "o", "a", "2")
			b.put(0, "p", "a", "2")
			if b.looked[owner] || b.pass(t, owner, false, nil) {
				t.Error("a new value under a key is one of the keys")
			}
		},
		"very many keys are all of it": func(t *testing.T, b *bench) {
			var keys []string
			for i := range mostKeys * 3 {
				keys = append(keys, fmt.Sprint(i))
			}
			b.pass(t, owner, false, keyed(t, "x", keys...))
			if n := b.left(); n > 2 {
				t.Errorf("%d things are held", n)
			}
			b.put(0, "o", "7", "1")
			if !b.looked[owner] || !b.pass(t, owner, false, nil) || b.pass(t, owner, false, nil) {
				t.Error("a change is not found, or found twice")
			}
		},
		"what changes while all of it is read": func(t *testing.T, b *bench) {
			v := b.readers.View(owner, false, true)
			reader, _ := v.For("h", "").Open("x")
			b.put(0, "o", "never read", "1")
			for i := range mostKeys * 2 {
				if _, err := reader.Get(fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			if v.Keep(true); !b.looked[owner] || !b.pass(t, owner, false, nil) {
				t.Error("it is lost")
			}
		},
		"an index that cannot be read": func(t *testing.T, b *bench) {
			b.unread = errors.New("forbidden")
			v := b.readers.View(owner, false, true)
			if _, err := v.For("h", "").Open("x"); !errors.Is(err, b.unread) || !v.Failed() {
				t.Errorf("error %v", err)
			}
			v.Keep(true)
			v = b.readers.View(owner, false, true)
			if again := v.Refresh(); again == 0 || v.Changed("h") {
				t.Errorf("it is looked at after %v", again)
			}
			v.Keep(true)
			b.unread = nil
			b.all[0].Grant()
			if !b.looked[owner] || !b.pass(t, owner, false, keyed(t, "x", "a")) {
				t.Error("a reader that could not read it is not notified when it can")
			}
			b.readers.Clear()
			if b.left() > 0 {
				t.Error("something is left")
			}
		},
		"one that cannot be read for a time changes nothing, until it can": func(t *testing.T, b *bench) {
			b.pass(t, owner, false, keyed(t, "x", "a"))
			b.unread = errors.New("gone for now")
			b.put(0, "o", "a", "1")
			if b.pass(t, owner, false, nil) {
				t.Error("a change is found in what cannot be seen")
			}
			clear(b.looked)
			b.unread = nil
			b.all[0].Grant()
			if !b.looked[owner] || !b.pass(t, owner, false, nil) {
				t.Error("the change is lost")
			}
		},
		"a reader with a schedule is not woken": func(t *testing.T, b *bench) {
			v := b.readers.View(owner, true, false)
			keyed(t, "x", "a")(v.For("h", ""))
			v.Keep(true)
			if b.left() > 0 {
				t.Error("something is held")
			}
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { play(t, newBench()) })
	}
}

// BenchmarkReaders reports how many bytes are held for each of 20,000 objects that read one key of their own, and
// how long a reconcile takes that reads it.
func BenchmarkReaders(b *testing.B) {
	const n = 20_000
	names := make([]cache.ObjectName, n)
	for i := range names {
		names[i] = ownerOf(i)
	}
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		set := newBench()
		before := live()
		for _, owner := range names {
			set.pass(b, owner, true, keyed(b, "x", owner.Name))
		}
		b.ReportMetric(float64(live()-before)/n, "B/reader")
		runtime.KeepAlive(set)
	}
}
