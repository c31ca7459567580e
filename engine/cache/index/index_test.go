// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
)

// model is an index as one would write it without a thought for time and memory.
type model map[types.NamespacedName][]Entry

func (m model) values(key Key) (out []string) {
	for _, of := range slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		for _, e := range m[of] {
			if e.Key == key {
				out = append(out, e.Value)
			}
		}
	}
	return out
}

func (m model) keys() map[Key][]string {
	out := map[Key][]string{}
	for _, entries := range m {
		for _, e := range entries {
			out[e.Key] = m.values(e.Key)
		}
	}
	return out
}

var sorted = cmpopts.SortSlices(func(a, b Key) bool { return a < b })

// TestAnIndexIsWhatItsObjectsSay holds, through many changes, that an index has what its objects have and nothing else,
// and that it reports the keys whose values changed and no others.
func TestAnIndexIsWhatItsObjectsSay(t *testing.T) {
	keys := []Key{must("a"), must("b"), must("c"), must(int64(1)), must(true)}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		x, m := newIndex(), model{}
		for step := range 300 {
			of := types.NamespacedName{Namespace: fmt.Sprint("ns-", r.IntN(3)), Name: fmt.Sprint("o-", r.IntN(6))}
			before, digests := m.keys(), digestsOf(x, keys)
			var entries []Entry
			for range r.IntN(4) {
				entries = append(entries, Entry{keys[r.IntN(len(keys))], fmt.Sprint(r.IntN(3))})
			}
			change := x.Put(of, slices.Clone(entries))
			if delete(m, of); len(entries) > 0 {
				m[of] = entries
			}
			after := m.keys()
			var want Change
			for _, key := range keys {
				if !slices.Equal(before[key], after[key]) {
					want.Keys = append(want.Keys, key)
				}
				want.Set = want.Set || (len(before[key]) > 0) != (len(after[key]) > 0)
			}
			if diff := gocmp.Diff(want, change, sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, step %d: change (-want +got):\n%s", seed, step, diff)
			}
			for i, digest := range digestsOf(x, keys) {
				if (digest != digests[i]) != slices.Contains(want.Keys, keys[i]) {
					t.Fatalf("seed %d, step %d: the digest of %s changed: %v", seed, step, keys[i], digest != digests[i])
				}
			}
			hold(t, x, m, keys)
		}
		for of := range m {
			x.Put(of, nil)
		}
		empty := newIndex()
		if len(x.objects)+len(x.keys) > 0 || x.digestOfAll() != empty.digestOfAll() || x.digestOfKeys() != empty.digestOfKeys() {
			t.Errorf("seed %d: %d objects and %d keys are left behind", seed, len(x.objects), len(x.keys))
		}
	}
}

func must(value any) Key {
	k, err := keyOf(value)
	if err != nil {
		panic(err)
	}
	return k
}

func digestsOf(x *Index, keys []Key) (out []uint64) {
	for _, key := range keys {
		out = append(out, x.Digest(key))
	}
	return out
}

// hold compares an index with its model.
func hold(t *testing.T, x *Index, m model, keys []Key) {
	t.Helper()
	for _, key := range keys {
		got, digest := x.Get(key)
		if diff := gocmp.Diff(m.values(key), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("values of %s (-want +got):\n%s", key, diff)
		}
		if digest != x.Digest(key) || digest == 0 {
			t.Fatalf("digest of %s: %x and %x", key, digest, x.Digest(key))
		}
	}
	got, _ := x.Keys()
	if diff := gocmp.Diff(slices.SortedFunc(maps.Keys(m.keys()), compare), got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("keys (-want +got):\n%s", diff)
	}
	if objects, n := x.Size(); objects != len(m) || n != len(got) {
		t.Fatalf("it has %d objects and %d keys, want %d and %d", objects, n, len(m), len(got))
	}
}

// TestDigestsOfTheWhole holds that they depend on the content alone, however it came about.
func TestDigestsOfTheWhole(t *testing.T) {
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	one, two := Entry{must("x"), "1"}, Entry{must("y"), "2"}
	x, y := newIndex(), newIndex()
	x.Put(a, []Entry{one})
	x.Put(b, []Entry{two})
	keys, all := x.digestOfKeys(), x.digestOfAll()
	y.Put(b, []Entry{two})
	y.Put(a, []Entry{two})
	y.Put(a, []Entry{one})
	if y.digestOfKeys() != keys || y.digestOfAll() != all {
		t.Error("the same contents have other digests")
	}
	x.Put(a, []Entry{{must("x"), "9"}})
	if x.digestOfKeys() != keys || x.digestOfAll() == all {
		t.Error("a new value changes the digest of everything, and not that of the keys")
	}
	if _, digest := x.Keys(); digest != x.digestOfKeys() {
		t.Error("the keys come with another digest")
	}
}

// TestKeys holds what can be a key, and which keys are the same.
func TestKeys(t *testing.T) {
	for _, same := range [][]any{{int64(1), 1, 1.0}, {0.0, math.Copysign(0, -1), int64(0)}, {"1"}, {1.5}, {true}, {"true"}, {""}, {int64(math.MinInt64)}, {1e300}} {
		for _, value := range same {
			if got := must(value); got != must(same[0]) {
				t.Errorf("%v is the key %q, want that of %v", value, got, same[0])
			}
			if v := must(value).Value(); must(v) != must(value) {
				t.Errorf("the key of %v gives %v", value, v)
			}
		}
	}
	all := []Key{must(false), must(true), must(-2.5), must(int64(1)), must(1.5), must(int64(10)), must(""), must("1"), must("a")}
	if !slices.IsSortedFunc(all, compare) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("keys in another order than %v", all)
	}
	for value, want := range map[any]string{math.NaN(): "NaN", math.Inf(1): "+Inf", nil: "null", struct{}{}: "struct", "caf\xe9": `UTF-8, found "caf\xe9"`} {
		if _, err := keyOf(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", value, err, want)
		}
	}
	for _, value := range []any{[]any{}, map[string]any{}} {
		if _, err := keyOf(value); err == nil {
			t.Errorf("%v is a key", value)
		}
	}
}

// filled is an index of so many objects, each with a key of its own and a value of about 60 bytes.
func filled(n int) *Index {
	x := newIndex()
	for i := range n {
		x.Put(nameOf(i), []Entry{{must(fmt.Sprint("tenant-", i)), fmt.Sprintf(`{"namespace":"team-%d","plan":"gold","size":%d,"region":"x"}`, i%100, i)}})
	}
	return x
}

func nameOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprint("team-", i%100), Name: fmt.Sprint("object-", i)}
}

// BenchmarkHeld reports how many bytes an index of 20,000 objects takes for each.
func BenchmarkHeld(b *testing.B) {
	const n = 20_000
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := live()
		x := filled(n)
		b.ReportMetric(float64(live()-before)/n, "B/object")
		runtime.KeepAlive(x)
	}
}

// BenchmarkPut is a change of one of 20,000 objects, BenchmarkSame one that changes nothing.
func BenchmarkPut(b *testing.B) {
	x, i := filled(20_000), 0
	for b.Loop() {
		i++
		x.Put(nameOf(i%20_000), []Entry{{must("one"), fmt.Sprint(i)}})
	}
}

func BenchmarkSame(b *testing.B) {
	x := filled(20_000)
	one := []Entry{{must("tenant-7"), "1"}}
	for b.Loop() {
		x.Put(nameOf(7), one)
	}
}

// BenchmarkFirstListing is 20,000 objects under one key.
func BenchmarkFirstListing(b *testing.B) {
	for b.Loop() {
		x := newIndex()
		for _, i := range rand.Perm(20_000) {
			x.Put(nameOf(i), []Entry{{must("all"), "1"}})
		}
	}
}
