// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestHash holds that values have the same hash when their JSON is the same, and only then.
func TestHash(t *testing.T) {
	type text string
	values := []any{
		nil, true, false, "", "a", "b", int64(0), int64(1), int64(-1), int64(1) << 60, 0.5, -0.5, 1e300,
		[]any{}, []any{nil}, []any{"a", "b"}, []any{"b", "a"}, []any{[]any{"a"}, "b"}, []any{"ab"}, []any{[]any{}}, []any{map[string]any{}},
		map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": "b"}, map[string]any{"b": "a"}, map[string]any{"a": "b", "b": "a"},
		map[string]any{"a": "a", "b": "b"}, map[string]any{"a": map[string]any{"b": "c"}}, map[string]any{"a": map[string]any{}, "b": "c"},
		"0", "1", "true", "null", "[]", "{}", // not what they spell
		1.0, float64(1 << 60), int(1), int32(-1), text("a"), []string{"a", "b"}, map[string]string{"a": "b"}, struct{ A int }{1}, []any(nil), map[string]any(nil),
		map[string]any{"A": int64(1)}, math.Copysign(0, -1),
	}
	for i, a := range values {
		for j, b := range values {
			x, errX := Hash(a)
			y, errY := Hash(b)
			if errX != nil || errY != nil {
				t.Fatal(errX, errY)
			}
			if same := jsonOf(t, a) == jsonOf(t, b); same != (x == y) {
				t.Errorf("%d %#v and %d %#v are the same: %v; their hashes: %v", i, a, j, b, same, x == y)
			}
		}
	}
	for name, value := range map[string]any{"not a number": []any{math.NaN()}, "infinite": map[string]any{"a": math.Inf(1)}, "a function": []any{func() {}}} {
		if got, err := Hash(value); err == nil {
			t.Errorf("%s: %d, want an error", name, got)
		}
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	data, err := AppendJSON(nil, value)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) == "-0" { // which is 0
		return "0"
	}
	return string(data)
}

// TestHashOfTrees holds the same of trees that differ in one place.
func TestHashOfTrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[uint64]string{}
	for range 20000 {
		tree := grown(random, 3)
		sum, err := Hash(tree)
		if err != nil {
			t.Fatal(err)
		}
		text := jsonOf(t, tree)
		if before, met := seen[sum]; met && before != text {
			t.Fatalf("%s and %s have one hash", before, text)
		}
		seen[sum] = text
	}
}

func grown(random *rand.Rand, depth int) any {
	keys := []string{"a", "b", "c", "aa"}
	switch kind := random.IntN(6); {
	case kind == 0 || depth == 0:
		return int64(random.IntN(4))
	case kind == 1:
		return keys[random.IntN(len(keys))]
	case kind < 4:
		out := []any{}
		for range random.IntN(3) {
			out = append(out, grown(random, depth-1))
		}
		return out
	default:
		out := map[string]any{}
		for range random.IntN(4) {
			out[keys[random.IntN(len(keys))]] = grown(random, depth-1)
		}
		return out
	}
}

func BenchmarkHash(b *testing.B) {
	tree := map[string]any{
		"apiVersion": "v1", "kind": "Foo", "metadata": map[string]any{"name": "a", "labels": map[string]any{"a": "b", "c": "d"}},
		"spec": map[string]any{"replicas": int64(3), "text": strings.Repeat("x", 1000), "list": []any{"a", "b", "c"}},
	}
	b.Run("hash", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = Hash(tree)
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = AppendJSON(nil, tree)
		}
	})
}
