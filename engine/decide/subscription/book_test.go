// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"errors"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// reader is a reader with a number.
type reader int

// progress is progress of such readers by texts.
type book = Readers[string, reader]

// visited returns the readers that are visited for keys, in order.
func visited(b *book, keys ...string) (out []reader) {
	b.Each(func(who reader) { out = append(out, who) }, keys...)
	slices.Sort(out)
	return out
}

func TestReadersAreVisitedByTheirKeys(t *testing.T) {
	tests := map[string]struct {
		do   func(b *book)
		a, b []reader
		size int
	}{
		"there is no reader":                {func(*book) {}, nil, nil, 0},
		"one reads a":                       {func(b *book) { b.Add(1, "a") }, []reader{1}, nil, 1},
		"one reads both":                    {func(b *book) { b.Add(1, "a", "b") }, []reader{1}, []reader{1}, 2},
		"one subscribes twice":              {func(b *book) { b.Add(1, "a", "a"); b.Add(1, "a") }, []reader{1}, nil, 1},
		"two read the same":                 {func(b *book) { b.Add(1, "a"); b.Add(2, "a") }, []reader{1, 2}, nil, 2},
		"one of two drops it":               {func(b *book) { b.Add(1, "a"); b.Add(2, "a"); b.Remove(1, "a") }, []reader{2}, nil, 1},
		"one drops a key of two":            {func(b *book) { b.Add(1, "a", "b"); b.Remove(1, "a") }, nil, []reader{1}, 1},
		"one drops a key that it never had": {func(b *book) { b.Add(1, "a"); b.Remove(1, "b"); b.Remove(2, "a") }, []reader{1}, nil, 1},
		"all are cleared":                   {func(b *book) { b.Add(1, "a", "b"); b.Add(2, "a"); b.Clear() }, nil, nil, 0},
		"one reads a after that":            {func(b *book) { b.Add(1, "a", "b"); b.Clear(); b.Add(1, "a") }, []reader{1}, nil, 1},
		"all are dropped":                   {func(b *book) { b.Add(1, "a", "b"); b.Add(2, "a"); b.Remove(1, "a", "b"); b.Remove(2, "a") }, nil, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &book{}
			tt.do(b)
			if diff := gocmp.Diff([][]reader{tt.a, tt.b}, [][]reader{visited(b, "a"), visited(b, "b")}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("visited are (-want +got):\n%s", diff)
			}
			if left := len(b.by)+len(b.crowds) > 0; b.Size() != tt.size || left != (tt.size > 0) {
				t.Errorf("the size is %d, want %d; keys are left: %v", b.Size(), tt.size, left)
			}
		})
	}
}

// TestACrowdOfReadersIsVisitedAsFewAre holds the same for keys that have more readers than a list keeps, before and after most of them have
// gone.
func TestACrowdOfReadersIsVisitedAsFewAre(t *testing.T) {
	var b book
	var all []reader
	for who := range reader(3 * few) {
		b.Add(who, "a")
		b.Add(who, "a")
		all = append(all, who)
		if diff := gocmp.Diff(all, visited(&b, "a")); diff != "" || b.Size() != len(all) {
			t.Fatalf("with %d readers the size is %d, and visited are (-want +got):\n%s", len(all), b.Size(), diff)
		}
	}
	for len(all) > 0 {
		b.Remove(all[0], "a", "a")
		all = all[1:]
		if diff := gocmp.Diff(all, visited(&b, "a"), cmpopts.EquateEmpty()); diff != "" || b.Size() != len(all) {
			t.Fatalf("with %d readers left the size is %d, and visited are (-want +got):\n%s", len(all), b.Size(), diff)
		}
	}
	if len(b.by)+len(b.crowds) > 0 {
		t.Error("a key without readers is kept")
	}
	for who := range reader(2 * few) {
		b.Add(who, "a")
	}
	if b.Clear(); len(visited(&b, "a")) > 0 || b.Size() > 0 {
		t.Error("a crowd is left after Clear")
	}
}

func TestReadersThatCouldNotReadAreVisited(t *testing.T) {
	forbidden := errors.New("forbidden")
	tests := map[string]struct {
		answers []error
		then    func(*book)
		want    error
		missed  []reader
	}{
		"it can be read":                    {[]error{nil}, nil, nil, nil},
		"it cannot be read":                 {[]error{forbidden, forbidden}, nil, forbidden, []reader{1}},
		"it can be read a moment later":     {[]error{forbidden, nil}, nil, nil, []reader{1}},
		"the reader has found it":           {[]error{forbidden, forbidden}, func(b *book) { b.Recovered(1) }, forbidden, nil},
		"another one has found it":          {[]error{forbidden, forbidden}, func(b *book) { b.Recovered(2) }, forbidden, []reader{1}},
		"a reader that drops all its keys":  {[]error{forbidden, forbidden}, func(b *book) { b.Remove(1, "a") }, forbidden, []reader{1}},
		"all readers are cleared":           {[]error{forbidden, forbidden}, (*book).Clear, forbidden, nil},
		"it is visited again until it read": {[]error{forbidden, forbidden}, func(b *book) { b.EachFailed(func(reader) {}) }, forbidden, []reader{1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, asked := &book{}, 0
			err := b.Read(1, func() error {
				asked++
				return tt.answers[asked-1]
			})
			if !errors.Is(err, tt.want) || asked != len(tt.answers) {
				t.Errorf("it was asked %d times, with the error %v", asked, err)
			}
			if tt.then != nil {
				tt.then(b)
			}
			var missed []reader
			b.EachFailed(func(who reader) { missed = append(missed, who) })
			if diff := gocmp.Diff(tt.missed, missed, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("those that could not read are (-want +got):\n%s", diff)
			}
		})
	}
}
