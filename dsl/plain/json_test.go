// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding/json"
	"math"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestAppendJSON holds that the bytes are those of encoding/json: digests on objects are of them.
func TestAppendJSON(t *testing.T) {
	type text string
	tests := map[string]any{
		"nothing":                     nil,
		"booleans":                    []any{true, false},
		"text":                        "plain text, with / and ' and ~",
		"no text":                     "",
		"what HTML takes for its own": "<a href=\"x\">&amp;</a>",
		"quotes and backslashes":      `a "b" \c\`,
		"control characters":          "\x00\x01\b\t\n\f\r\x1b\x1f\x7f",
		"unicode":                     "grüße, 世界 🌍 e\u0301",
		"line separators":             "a\u2028b\u2029c",
		"a byte order mark":           "\ufeff",
		"text that is not UTF-8":      "a\xffb\xc3",
		"half a surrogate":            "\xed\xa0\x80",
		"integers":                    []any{int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64)},
		"floats":                      []any{0.0, math.Copysign(0, -1), 1.0, 0.1, 1e20, 1e21, 1.5e300, 1e-6, 1e-7, 5e-324, math.MaxFloat64, 100000000000000000000.0},
		"big integers as floats":      float64(1 << 62),
		"a number as text":            json.Number("12345678901234567890.10"),
		"keys in their order":         map[string]any{"b": int64(1), "a": int64(2), "B": int64(3), "": int64(4), "aa": int64(5), "ä": int64(6), "<": int64(7), "a\u2028": int64(8)},
		"empty and no maps and lists": []any{map[string]any{}, []any{}, map[string]any(nil), []any(nil)},
		"lists of other types":        map[string]any{"ends": []bool{true, false}, "names": []string{"<a>", "b"}, "none": []string(nil), "bytes": []byte("abc")},
		"other maps":                  map[string]any{"labels": map[string]string{"b": "1", "a": "<2>"}},
		"named types":                 []any{text("a<b"), int(3), int32(4), uint8(5), float32(0.1)},
		"structs":                     struct{ A, b string }{"<", "x"},
		"many keys": func() any {
			out := map[string]any{}
			for c := range 200 {
				out[string(rune(c))] = int64(c)
			}
			return out
		}(),
		"deep": map[string]any{"a": []any{map[string]any{"b": []any{[]any{nil, "x"}, map[string]any{"c": 0.5}}}}},
	}
	for name, value := range tests {
		t.Run(name, func(t *testing.T) { same(t, value) })
	}
	for name, value := range map[string]any{"not a number": []any{math.NaN()}, "a function": map[string]any{"f": func() {}}} {
		if got, err := AppendJSON(nil, value); err == nil {
			t.Errorf("%s: %s, want an error", name, got)
		}
	}
}

func same(t *testing.T, value any) {
	t.Helper()
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := AppendJSON([]byte("before "), value); err != nil || string(got) != "before "+string(want) {
		t.Errorf("it is %s (%v), and with encoding/json %s", got, err, want)
	}
}

func FuzzAppendJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,"x\u2028<"],"b":{"c":null}}`, `"\ud800"`, `1e400`, `[[[]]]`, `{"\u0000":9223372036854775808}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var value any
		if utiljson.Unmarshal(data, &value) == nil {
			same(t, value)
		}
		same(t, string(data))
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	var value any
	text := `{"metadata":{"labels":{"app":"foo","tier":"gold"},"annotations":{"example.com/a":"b"}},"spec":{"size":3,"color":"red","list":["a","b","c"],"template":{"x":1,"y":"z","w":true}}}`
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		b.Fatal(err)
	}
	b.Run("here", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := AppendJSON(nil, value); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(value); err != nil {
				b.Fatal(err)
			}
		}
	})
}
