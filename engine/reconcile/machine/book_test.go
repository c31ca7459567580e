// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestRead holds what is read of an object's status, by whomever it was written.
func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		status map[string]any
		want   Book
		none   bool
	}{
		"all fields": {
			map[string]any{"state": "Up", "stateUID": "u", "stateSince": "1999-12-31T23:00:00Z", "stateEntered": "1999-12-31T23:30:00Z", "stateFailures": int64(2)},
			Book{State: "Up", Since: begins.Add(-time.Hour), Entered: begins.Add(-30 * time.Minute), Failures: 2}, false,
		},
		"a number of JSON": {map[string]any{"state": "Up", "stateUID": "u", "stateFailures": 2.0}, Book{State: "Up", Failures: 2}, false},
		"unreadable fields": {
			map[string]any{"state": "Up", "stateUID": "u", "stateSince": 1, "stateEntered": "soon", "stateFailures": "many"}, Book{State: "Up"}, false,
		},
		"a time in the future": {map[string]any{"state": "Up", "stateUID": "u", "stateSince": "2001-01-01T00:00:00Z"}, Book{State: "Up"}, false},
		"a time in another zone": {
			map[string]any{"state": "Up", "stateUID": "u", "stateSince": "2000-01-01T00:00:00+01:00"}, Book{State: "Up", Since: begins.Add(-time.Hour)}, false,
		},
		"another object's book": {map[string]any{"state": "Up", "stateUID": "v"}, Book{}, true},
		"no state":              {map[string]any{"stateUID": "u"}, Book{}, true},
		"no status":             {nil, Book{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, m := range []*dsl.Machine{{}, {Name: "door"}} {
					status := test.status
					if m.Name != "" {
						status = map[string]any{m.Name: test.status}
					}
					o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "status": status}}
					got, found := Read(m, o)
					if diff := cmp.Diff(test.want, got); diff != "" || found == test.none {
						t.Errorf("machine %q: found %v (-want +got):\n%s", m.Name, found, diff)
					}
				}
			})
		})
	}
}

// TestWrittenBookIsReadBack holds that progress is the same after it was written.
func TestWrittenBookIsReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, b := range []Book{
			{State: "Up", Since: begins}, {State: "Up", Since: begins, Entered: begins}, {State: "Up", Since: begins, Failures: 3},
		} {
			m := &dsl.Machine{Name: "door"}
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "status": place{Book: b}.status(m, "u")}}
			if got, _ := Read(m, o); got != b {
				t.Errorf("%+v is read as %+v", b, got)
			}
		}
	})
}

// TestHistory holds which transitions the status keeps.
func TestHistory(t *testing.T) {
	for name, test := range map[string]struct {
		most, moves int
		want        []string
	}{
		"fewer than the limit": {3, 2, []string{"0", "1"}},
		"more than the limit":  {3, 5, []string{"2", "3", "4"}},
		"the limit of ten":     {0, 12, []string{"2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}},
		"where none is wanted": {-1, 5, nil},
		"where none was taken": {3, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := &dsl.Machine{History: test.most}
			var history []any
			var got []string
			for n := range test.moves {
				next := kept(m, history, Move{To: fmt.Sprint(n)})
				before := slices.Clone(next)
				_ = kept(m, history, Move{To: "elsewhere"})
				if !cmp.Equal(before, next) {
					t.Errorf("the history %v has become %v", before, next)
				}
				history = next
			}
			for _, item := range history {
				got = append(got, item.(map[string]any)["to"].(string))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTaken holds which transitions of an attempt count as taken: those that the written object has.
func TestTaken(t *testing.T) {
	m := &dsl.Machine{}
	moves := []Move{{From: "A", To: "B", At: begins}, {From: "B", To: "C", At: begins}}
	written := func(state string, since time.Time) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "status": Book{State: state, Since: since}.tree("u")}}
	}
	for name, test := range map[string]struct {
		moves   []Move
		written *unstructured.Unstructured
		want    int
	}{
		"the object is in the last state":                      {moves, written("C", begins), 2},
		"it is in another state":                               {moves, written("B", begins), 0},
		"it has been in the state for longer":                  {moves, written("C", begins.Add(-time.Second)), 0},
		"the schema lacks the book":                            {moves, &unstructured.Unstructured{Object: map[string]any{}}, 0},
		"no transition was in the patch, and it is in a state": {nil, written("C", begins), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Result{Moves: test.moves}).Taken(m, test.written); len(got) != test.want {
				t.Errorf("taken are %v, want %d", got, test.want)
			}
		})
	}
}

// TestMove holds that a place is not changed when the object moves on from it.
func TestMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := twoStates(dsl.State{})
		first, _ := place{Book: Book{State: "Up", Since: begins, Entered: begins, Failures: 3}}.find(&m)
		time.Sleep(time.Minute)
		down, lost := first.after(&m, "Down", "it may"), first.after(&m, "Lost", "it must")
		if first.State != "Up" || len(first.moves) > 0 || len(first.history) > 0 {
			t.Errorf("the first place has become %+v", first)
		}
		want := Move{From: "Up", To: "Lost", At: begins.Add(time.Minute), Stayed: time.Minute, Why: "it must", Failed: true}
		if diff := cmp.Diff([]Move{want}, lost.moves); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got, want := down.Book, (Book{State: "Down", Since: begins.Add(time.Minute)}); got != want || down.declared != &m.States[1] {
			t.Errorf("the book is %+v, want %+v", got, want)
		}
	})
}
