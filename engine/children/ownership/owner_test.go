// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

func keys() Keys { return KeysOf(dsl.New("op")) }

func owner() Owner {
	o := &unstructured.Unstructured{Object: tree{
		"apiVersion": "example.com/v1", "kind": "Foo",
		"metadata": tree{"name": "f", "namespace": "ns", "uid": "u-1"},
	}}
	return Owner{Object: o, Namespaced: true, Keys: keys()}
}

// desiredOf reads and completes a child of the owner.
func desiredOf(given any, spec dsl.ChildSpec) (*unstructured.Unstructured, error) {
	desired, err := dsl.Object(given)
	if err != nil {
		return nil, err
	}
	return desired, owner().Complete(desired, true, spec)
}

// FuzzTitle holds that what is written onto a child is read back, whatever its key is.
func FuzzTitle(f *testing.F) {
	f.Add("h/i", "", "", 0)
	for _, text := range []string{"", "a", "a/b", "a;retain", "%2F", "ü ", "\x00\xff", "a\n"} {
		f.Add("h", "n", text, 0)
		f.Add(text, "n"+text, text, 1)
	}
	policies := []dsl.DeletePolicy{dsl.DeleteChild, dsl.OrphanChild, dsl.RetainChild}
	f.Fuzz(func(t *testing.T, handler, name, key string, policy int) {
		want := dsl.ChildSpec{Handler: handler, Name: name, Key: key, OnDelete: policies[uint(policy)%3]}
		title := Title(want)
		if name == "" {
			if stays := want.OnDelete == dsl.OrphanChild; stays != (title != "") {
				t.Errorf("a child without a name has the title %q", title)
			}
			if got, named := ParseTitle(title + Note(want, handler)); named || got.Handler != handler {
				t.Errorf("the title %q and the note of %q are read as %+v", title, handler, got)
			}
			return
		}
		if regexp.MustCompile(`[^!-~]`).MatchString(title) {
			t.Errorf("the title is %q", title)
		}
		got, ok := ParseTitle(title)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%q (-written +read):\n%s", title, diff)
		}
	})
}

func TestParseTitleRefuses(t *testing.T) {
	for _, text := range []string{"", "a", "a/", "a/b/c/d", "a/b;", "a/b;burn", "a/%zz", "a/b;retain;retain"} {
		if got, ok := ParseTitle(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestTitle(t *testing.T) {
	for want, spec := range map[string]dsl.ChildSpec{
		"h/n":              {Handler: "h", Name: "n"},
		"h/n/k":            {Handler: "h", Name: "n", Key: "k", OnDelete: dsl.DeleteChild},
		"h/n/k%2Fl;orphan": {Handler: "h", Name: "n", Key: "k/l", OnDelete: dsl.OrphanChild},
		"/n;retain":        {Name: "n", OnDelete: dsl.RetainChild},
	} {
		if got := Title(spec); got != want {
			t.Errorf("the title of %+v is %q, want %q", spec, got, want)
		}
	}
}

func TestOwnerName(t *testing.T) {
	for text, retained := range map[string]bool{"example.com/Foo/ns/f": true, "/Pod/ns/p": true, "example.com/Team//t": true} {
		name, ok := ParsePlace(text)
		if !ok || name.String() != text {
			t.Errorf("%q is read as %+v", text, name)
		}
		if errs := utilvalidation.IsValidLabelValue(name.Retained()); retained && len(errs) > 0 {
			t.Errorf("%s: %v", name.Retained(), errs)
		}
	}
	for _, text := range []string{"", "u-1", "a/b/c", "a/b/c/d/e", "a//c/d", "a/b/c/"} {
		if name, ok := ParsePlace(text); ok {
			t.Errorf("%q is read as %+v", text, name)
		}
	}
}

// TestTies holds what each way of owning writes onto a child.
func TestTies(t *testing.T) {
	name := "example.com/Foo/ns/f"
	retained := owner().Name().Retained()
	tests := map[string]struct {
		spec      dsl.ChildSpec
		reference bool
		label     string
		notes     map[string]string
		has       bool
	}{
		"owned":                  {dsl.ChildSpec{}, true, "", nil, true},
		"owned with a name":      {dsl.ChildSpec{Handler: "h", Name: "n"}, true, "", map[string]string{"child": "h/n"}, true},
		"owned, to be orphaned":  {dsl.ChildSpec{Name: "n", OnDelete: dsl.OrphanChild}, true, "", map[string]string{"child": "/n;orphan"}, true},
		"owned, to be retained":  {dsl.ChildSpec{Name: "n", OnDelete: dsl.RetainChild}, false, retained, map[string]string{"child": "/n;retain", "owner": name}, true},
		"labelled":               {dsl.ChildSpec{Ownership: dsl.Labelled, OnDelete: dsl.DeleteChild}, false, "u-1", map[string]string{"owner": name}, true},
		"labelled, and retained": {dsl.ChildSpec{Ownership: dsl.Labelled, OnDelete: dsl.RetainChild}, false, retained, map[string]string{"owner": name}, true},
		"unowned":                {dsl.ChildSpec{Ownership: dsl.Unowned, Name: "n"}, false, "", map[string]string{"owner": name, "child": "/n"}, false},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			given := tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": "c",
				"labels": tree{keys().Label: "copied"}, "annotations": tree{keys().Owner: "copied", keys().Child: "copied", keys().Applied: "copied"}}}
			got, err := desiredOf(given, tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			notes := map[string]string{}
			for key, value := range tt.notes {
				notes["op.handwerk.dev/"+key] = value
			}
			have := maps.Clone(got.GetAnnotations())
			delete(have, keys().Applied)
			if diff := cmp.Diff(notes, have); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if refs := len(got.GetOwnerReferences()); refs > 0 != tt.reference || got.GetLabels()[keys().Label] != tt.label {
				t.Errorf("%d owner references, labels %v", refs, got.GetLabels())
			}
			if err := validation.ValidateAnnotations(got.GetAnnotations(), field.NewPath("annotations")); len(err) > 0 {
				t.Error(err)
			}
			o := owner()
			if o.Has(got) && got.GetLabels()[keys().Label] != "" {
				t.Error("it has it without an inventory")
			}
			o.Inventory = o.Inventory.With(time.Now(), at(PlaceOf(got)))
			if o.Has(got) != tt.has || owner().IsOrphan(got) != (tt.spec.Ownership == dsl.Unowned) {
				t.Errorf("has %v, forgets %v", o.Has(got), owner().IsOrphan(got))
			}
			if ours, by := o.Owned(got); !ours {
				t.Errorf("it is not its owner's, but %s's", by)
			}
			other := o
			other.Object = other.Object.DeepCopy()
			other.Object.SetName("other")
			other.Object.SetUID("u-2")
			if ours, by := other.Owned(got); ours || by == "" || other.Has(got) || other.IsOrphan(got) {
				t.Errorf("it is another's too: %v %q", ours, by)
			}
		})
	}
}

// TestWhoseItIs holds whose an object is that is there already, and who may take it.
func TestWhoseItIs(t *testing.T) {
	const applied = bookkeeping.AppliedMark + "x"
	object := func(labels, notes map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: tree{"kind": "ConfigMap", "metadata": tree{"name": "c"}}}
		u.SetLabels(labels)
		u.SetAnnotations(notes)
		return u
	}
	ours, k := owner().Name().String(), keys()
	listing, listed := owner(), object(nil, nil)
	listed.SetNamespace("ns")
	listing.Inventory = listing.Inventory.With(time.Unix(1000, 0), at(PlaceOf(listed)))
	controlled := object(map[string]string{k.Label: "u-1"}, map[string]string{k.Owner: ours, k.Applied: applied})
	if err := unstructured.SetNestedSlice(controlled.Object, []any{tree{"kind": "Service", "name": "s", "uid": "u-9", "controller": true}}, "metadata", "ownerReferences"); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		live      *unstructured.Unstructured
		ours, has bool
		by        string
	}{
		"without an owner":                   {object(nil, nil), false, false, ""},
		"the label of this owner":            {object(map[string]string{k.Label: "u-1"}, map[string]string{k.Owner: ours, k.Applied: applied}), true, true, ""},
		"its annotation was taken off":       {object(map[string]string{k.Label: "u-1"}, map[string]string{k.Applied: applied}), true, true, ""},
		"a controller copied the label":      {object(map[string]string{k.Label: "u-1"}, nil), true, false, ""},
		"a controller copied it, and owns":   {controlled, false, false, "Service s"},
		"an owner of this name that is gone": {object(map[string]string{k.Label: "u-0"}, map[string]string{k.Owner: ours, k.Applied: applied}), false, false, "an earlier Foo ns/f"},
		"retained from one that is gone":     {object(map[string]string{k.Label: owner().Name().Retained()}, map[string]string{k.Owner: ours, k.Applied: applied}), true, true, ""},
		"another owner, by label":            {object(map[string]string{k.Label: "u-2"}, map[string]string{k.Owner: "example.com/Foo/ns/g", k.Applied: applied}), false, false, "Foo ns/g"},
		"another owner, whose name is lost":  {object(map[string]string{k.Label: "u-2"}, nil), false, false, "the object with uid u-2"},
		"another owner, without a label":     {object(nil, map[string]string{k.Owner: "example.com/Team//t", k.Applied: applied}), false, false, "Team t"},
		"its own, without a label":           {object(nil, map[string]string{k.Owner: ours, k.Applied: applied}), true, false, ""},
		"its name, but never applied":        {object(nil, map[string]string{k.Owner: ours}), false, false, "an earlier Foo ns/f"},
		"another operator":                   {object(nil, map[string]string{"b.example.com/owner": ours, "b.example.com/applied": applied}), false, false, "Foo ns/f, for b.example.com"},
		"an annotation that looks like it":   {object(nil, map[string]string{"b.example.com/owner": ours}), false, false, ""},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			tt.live.SetNamespace("ns")
			ours, by := listing.Owned(tt.live)
			if ours != tt.ours || !tt.ours && by != tt.by || listing.Has(tt.live) != tt.has {
				t.Errorf("ours %v, by %q, has %v", ours, by, listing.Has(tt.live))
			}
		})
	}
}

// TestSecretValues holds that a Secret is sent as the server keeps it.
func TestSecretValues(t *testing.T) {
	given := tree{"apiVersion": "v1", "kind": "Secret", "metadata": tree{"name": "s"},
		"stringData": tree{"a": "x", "b": "y"}, "data": tree{"b": "b2xk", "c": "eg\n=="}}
	got, err := desiredOf(given, dsl.ChildSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree{"a": "eA==", "b": "eQ==", "c": "eg=="}, got.Object["data"]); diff != "" || got.Object["stringData"] != nil {
		t.Errorf("%v: data (-want +got):\n%s", got.Object, diff)
	}
	if _, err := desiredOf(tree{"apiVersion": "v1", "kind": "Secret", "metadata": tree{"name": "s", "annotations": nil, "labels": nil}}, dsl.ChildSpec{}); err != nil {
		t.Errorf("metadata without values: %v", err)
	}
}

func TestAnObjectIsNoChildOfItself(t *testing.T) {
	itself := tree{"apiVersion": "example.com/v2", "kind": "Foo", "metadata": tree{"name": "f"}}
	for _, spec := range []dsl.ChildSpec{{}, {Ownership: dsl.Labelled}, {Ownership: dsl.Unowned}, {Adopt: dsl.AdoptIfUnowned}} {
		if _, err := desiredOf(itself, spec); !dsl.IsPermanent(err) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	others := []tree{
		{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": tree{"name": "g"}},
		{"apiVersion": "example.org/v1", "kind": "Foo", "metadata": tree{"name": "f"}},
		{"apiVersion": "example.com/v1", "kind": "Bar", "metadata": tree{"name": "f"}},
	}
	for _, other := range others {
		if _, err := desiredOf(other, dsl.ChildSpec{}); err != nil {
			t.Errorf("%v: %v", other, err)
		}
	}
}
