// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// existing returns an object of the core group.
func existing(kind, namespace, name, uid string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID(uid))
	return u
}

func TestPlacesFailObjectsAtTheSamePlace(t *testing.T) {
	t.Parallel()
	at := func(name string) place { return place{"", "ConfigMap", "ns", name} }
	for name, c := range map[string]struct {
		// levels are the names of the objects, by level; want are the errors of all objects.
		levels [][]string
		want   []string
	}{
		"different places":               {[][]string{{"x", "y"}, {"z"}}, []string{"", "", ""}},
		"both of one level fail":         {[][]string{{"x", "x"}}, []string{"o0 and o1", "o0 and o1"}},
		"only the one of a later level":  {[][]string{{"x"}, {"x"}}, []string{"", "o0 and o1"}},
		"each later level names the one": {[][]string{{"x"}, {"x"}, {"x"}}, []string{"", "o0 and o1", "o0 and o2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, all := places{}, []*object{}
			for _, names := range c.levels {
				st := &state{}
				for _, name := range names {
					o := &object{called: "o" + string(rune('0'+len(all))), place: at(name)}
					st.objects, all = append(st.objects, o), append(all, o)
				}
				taken.add([]*state{st})
			}
			for i, o := range all {
				want := c.want[i]
				if want != "" {
					want += " come out as the same object: give each a name of its own"
				}
				got := ""
				if o.err != nil {
					got = o.err.Error()
				}
				if got != want {
					t.Errorf("object %d has error %q, want %q", i, got, want)
				}
			}
			if taken[at(c.levels[0][0])] != all[0] {
				t.Error("the first object has not got its place")
			}
		})
	}
}

func TestPlacesFindWhatIsNotDesired(t *testing.T) {
	t.Parallel()
	taken := places{
		{"", "ConfigMap", "ns", "kept"}: {},
		{"", "Node", "ns", "cluster"}:   {},
		{"", "Node", "other", "moved"}:  {live: existing("Node", "", "moved", "1")},
	}
	for name, c := range map[string]struct {
		found *unstructured.Unstructured
		gone  bool
	}{
		"an object at a desired place":                                      {existing("ConfigMap", "ns", "kept", "2"), false},
		"an object without a namespace, desired in the owner's":             {existing("Node", "", "cluster", "2"), false},
		"an object that was applied, though its template has a namespace":   {existing("Node", "", "moved", "1"), false},
		"an object of another kind":                                         {existing("Secret", "ns", "kept", "2"), true},
		"an object in another namespace":                                    {existing("ConfigMap", "other", "kept", "2"), true},
		"an object with another name":                                       {existing("ConfigMap", "ns", "old", "2"), true},
		"an object without a uid is not taken for one that was not created": {existing("ConfigMap", "ns", "old", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := taken.without([]dsl.ChildObject{{Object: c.found}}, "ns")
			if gone := len(left) == 1; gone != c.gone {
				t.Errorf("not desired: %v, want %v", gone, c.gone)
			}
		})
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	with := func(name string) *object {
		return &object{child: &child{}, live: existing("ConfigMap", "ns", name, name)}
	}
	s := states{
		"b":    {objects: []*object{with("b1"), {child: &child{}}, with("b2")}},
		"a":    {objects: []*object{with("a1")}},
		"out":  {excluded: true},
		"open": {open: true},
	}
	excluded, others := s.split([]string{"a", "out", "unknown", "open"})
	if diff := cmp.Diff([]string{"out"}, excluded); diff != "" {
		t.Errorf("excluded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "unknown", "open"}, others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if s.blocked(&child{needs: []string{"a", "out"}}) {
		t.Error("a child waits for one that is complete, or not desired")
	}
	if !s.blocked(&child{needs: []string{"a", "open"}}) {
		t.Error("a child does not wait for one that is not complete")
	}
	var names []string
	for _, found := range s.live() {
		names = append(names, found.Object.GetName())
	}
	if want := []string{"a1", "b1", "b2"}; !slices.Equal(names, want) {
		t.Errorf("the existing objects are %v, want %v", names, want)
	}
}
