// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// fakeIndexes has one index, them, and one that cannot be read, bad.
type fakeIndexes struct{ asked []any }

var errUnread = errors.New("bars is forbidden")

func (f *fakeIndexes) Names() []string { return []string{"them", "bad"} }

func (f *fakeIndexes) Open(name string) (dsl.IndexReader, error) {
	if name != "them" {
		return nil, errUnread
	}
	return f, nil
}

func (f *fakeIndexes) Get(key any) ([]string, error) {
	f.asked = append(f.asked, key)
	switch key.(type) {
	case string, bool, int64, float64:
	default:
		return nil, fmt.Errorf("no such key: %T", key)
	}
	return map[any][]string{"a": {"1", "2"}, int64(7): {`{"n":"seven"}`}}[key], nil
}

func (f *fakeIndexes) Has(key any) (bool, error) {
	found, err := f.Get(key)
	return len(found) > 0, err
}

func (f *fakeIndexes) Keys() []any { return []any{int64(7), "a"} }

// TestIndexes holds what an expression sees of an index: a list under any key, and no error for one that has nothing.
func TestIndexes(t *testing.T) {
	tests := map[string]string{
		"indexes.them['a']":                                  "[1 2]",
		"indexes.them.a":                                     "[1 2]",
		"indexes.them['unknown']":                            "[]",
		"indexes.them.unknown":                               "[]",
		"indexes['them'][self.metadata.name]":                "[1 2]",
		"indexes.them[7][0].n":                               "seven",
		"indexes.them[true].size()":                          "0",
		"indexes.them[self.spec.ratio]":                      "[]",
		"indexes.them['a'].map(x, x + 1)":                    "[2 3]",
		"'a' in indexes.them && !('b' in indexes.them)":      "true",
		"indexes.them.size()":                                "2",
		"indexes.them.map(k, k)":                             "[7 a]",
		"indexes.them.exists(k, indexes.them[k].size() > 1)": "true",
		"indexes.them[?'unknown'].value().size()":            "0",
		"indexes.map(name, name).size()":                     "2",
		"{'all': indexes.them.a}":                            "map[all:[1 2]]",
		"indexes.them[self.spec.nothing]":                    "error: a key is text, a number or true or false",
		"indexes.them[self.spec]":                            "error: a key is text, a number or true or false",
		"self.spec.nothing in indexes.them":                  "error: reading indexes.them: a key is text, a number or true or false, found null",
		"indexes.them[self.spec.other]":                      "error: self.spec.other is not set",
		"indexes.bad['a']":                                   "error: reading indexes.bad: bars is forbidden",
		"indexes.bad.all(k, true)":                           "error: reading indexes.bad: bars is forbidden",
		"indexes.other['a']":                                 "error: ",
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			p, err := compiler(t).Value(text)
			if err != nil {
				t.Fatal(err)
			}
			s := subject()
			s.Indexes = &fakeIndexes{}
			value, err := p.Eval(expr.Scope{Subject: s})
			got := fmt.Sprint(value)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got, want)) {
				t.Errorf("it gives %s, want %s", got, want)
			}
			if strings.Contains(text, "bad") && !errors.Is(err, errUnread) {
				t.Errorf("error %v, which does not say why the index cannot be read", err)
			}
		})
	}
}

// TestWhoReadsIndexes holds that an expression reports the indexes that it reads.
func TestWhoReadsIndexes(t *testing.T) {
	for text, want := range map[string][]string{
		"indexes.them['a']":                 {"them"},
		"indexes.?b[?'a'].orValue([])":      {"b"},
		"indexes.b.size() + indexes.a['x']": {"a", "b"},
		"indexes[self.metadata.name]['a']":  {"*"},
		"indexes.all(i, i != '')":           {"*"},
		"self.spec.indexes":                 nil,
		"[1].map(indexes, indexes)":         nil,
	} {
		p, err := compiler(t).Value(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Reads().Indexes; !slices.Equal(got, want) {
			t.Errorf("%s reads %v, want %v", text, got, want)
		}
	}
}

// TestAnIndexIsDecodedOnce holds that a macro which asks for each element does not read each time.
func TestAnIndexIsDecodedOnce(t *testing.T) {
	p, err := compiler(t).Value("[1, 2, 3].map(i, indexes.them['a'][0] + i)")
	if err != nil {
		t.Fatal(err)
	}
	s, all := subject(), &fakeIndexes{}
	s.Indexes = all
	got, err := p.Eval(expr.Scope{Subject: s})
	if diff := cmp.Diff([]any{int64(2), int64(3), int64(4)}, got); diff != "" || err != nil || len(all.asked) != 1 {
		t.Errorf("asked %v (%v)\n%s", all.asked, err, diff)
	}
}
