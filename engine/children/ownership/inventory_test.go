// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// begun is when the records of these tests were begun.
func begun() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func configMapAt(namespace, name string) Place {
	return Place{schema.GroupKind{Kind: "ConfigMap"}, namespace, name}
}

// at are places whose children the inventory does not name.
func at(places ...Place) map[Place]string {
	out := map[Place]string{}
	for _, place := range places {
		out[place] = unknownTitle
	}
	return out
}

func TestInventory(t *testing.T) {
	deployment := Place{schema.GroupKind{Group: "apps", Kind: "Deployment"}, "b", "d"}
	many := make([]Place, 500)
	for i := range many {
		many[i] = configMapAt(fmt.Sprint("tenant-", i), "settings")
	}
	tests := map[string]struct {
		inventory *Inventory
		text      string
	}{
		"without a child": {
			(*Inventory)(nil).With(begun(), nil),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z"}`,
		},
		"children are sorted": {
			(*Inventory)(nil).With(begun(), at(configMapAt("b", "x"), deployment, Place{schema.GroupKind{Kind: "Node"}, "", "n"}, configMapAt("a", "x"))),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x","/ConfigMap/b/x","/Node//n","apps/Deployment/b/d"]}`,
		},
		"one that has begun stays as old as it is": {
			(*Inventory)(nil).With(begun(), at(deployment)).With(begun().Add(time.Hour), at(configMapAt("a", "x"))).Without(deployment),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x"]}`,
		},
		"its places have their children": {
			(*Inventory)(nil).With(begun(), at(deployment)).With(begun(), map[Place]string{deployment: "h/n", configMapAt("a", "x"): ""}),
			`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x ","apps/Deployment/b/d h/n"]}`,
		},
		"many are packed": {(*Inventory)(nil).With(begun(), at(many...)), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := tt.inventory.Encode("u")
			if err != nil || tt.text != "" && text != tt.text || !strings.HasPrefix(text, bookkeeping.StateMark) || len(text) > 4000 {
				t.Errorf("%v: %s", err, text)
			}
			got, err := ParseInventory(text, "u")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.inventory.Places(), got.Places()); diff != "" || !got.since.Equal(begun()) {
				t.Errorf("since %v, places (-written +read):\n%s", got.since, diff)
			}
			if void, err := ParseInventory(text, "v"); void != nil || err != nil {
				t.Errorf("another object's is read as %v, %v", void, err)
			}
		})
	}
	for _, text := range []string{"x", `{"handwerk":2,"uid":"u"}`, `{"handwerk":1,"uid":"u","children":["x"]}`, `{"handwerk":1,"uid":"u","packed":"x"}`} {
		if got, err := ParseInventory(text, "u"); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
}

// TestAnInventoryOfAlikeChildrenIsSmall holds that an owner has room for many children whose names are long and alike.
func TestAnInventoryOfAlikeChildrenIsSmall(t *testing.T) {
	titles := map[Place]string{}
	for i := range 5000 {
		titles[configMapAt(fmt.Sprintf("team-production-%04d", i), "default-network-policy-of-the-platform-team-for-all-namespaces")] = "namespaces/default-network-policy"
	}
	text, err := (*Inventory)(nil).With(begun(), titles).Encode("u")
	if err != nil || len(text) > 32<<10 {
		t.Fatalf("it has %d bytes: %v", len(text), err)
	}
	if got, err := ParseInventory(text, "u"); err != nil || len(got.Places()) != len(titles) {
		t.Errorf("it is not read again: %v", err)
	}
}

// TestAnInventoryIsBounded holds how many children an owner may have, and that a text which a user wrote takes little more memory
// than it is long.
func TestAnInventoryIsBounded(t *testing.T) {
	teams := func(n int) (text string, err error) {
		titles := map[Place]string{}
		for i := range n {
			titles[configMapAt(fmt.Sprintf("team-%05d-%x", i, i*2654435761%1048576), "settings")] = fmt.Sprintf("spaces/settings/%05d", i)
		}
		return (*Inventory)(nil).With(begun(), titles).Encode("u")
	}
	text, err := teams(mostPlaces)
	if err != nil || len(text) > progress.MostOfAll {
		t.Fatalf("with all that it may have, it has %d bytes: %v", len(text), err)
	}
	if got, err := ParseInventory(text, "u"); err != nil || len(got.Places()) != mostPlaces {
		t.Errorf("it is not read again: %v", err)
	}
	if _, err := teams(mostPlaces + 1); !dsl.IsPermanent(err) {
		t.Errorf("one more is stored: %v", err)
	}
	long := map[Place]string{}
	for i := range 20 {
		long[configMapAt(fmt.Sprint("a", i), "c")] = "h/" + strings.Repeat("n", mostText/19)
	}
	if _, err := (*Inventory)(nil).With(begun(), long).Encode("u"); !dsl.IsPermanent(err) {
		t.Errorf("with long names it is stored: %v", err)
	}

	for name, text := range bombs(t) {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			got, err := ParseInventory(text, "u")
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 24<<20 || err == nil {
				t.Errorf("%d bytes of text take %d, %v", len(text), took, err)
			}
			runtime.KeepAlive(got)
		})
	}
	t.Run("one that is read", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		got, err := ParseInventory(text, "u")
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int(after.HeapAlloc) - int(before.HeapAlloc); held > 8*len(text) || err != nil {
			t.Errorf("of %d bytes of text %d are held, %v", len(text), held, err)
		}
		runtime.KeepAlive(got)
	})
}

// bombs are annotations with room on one object that list more than any owner has.
func bombs(t testing.TB) map[string]string {
	const head = `{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z",`
	pressed := func(plain string) string {
		var buf bytes.Buffer
		w, err := flate.NewWriter(&buf, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(plain)) // a buffer takes all
		_ = w.Close()
		return head + `"packed":"` + base64.StdEncoding.EncodeToString(buf.Bytes()) + `"}`
	}
	var places, texts strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&places, `"/C//%x",`, i)
		texts.WriteString(`"",`)
	}
	return map[string]string{
		"short places, packed": pressed("[" + places.String() + `"/C//x"]`), "short places": head + `"children":[` + places.String()[:200_000] + `"]}`,
		"nothing at all, packed": pressed("[" + texts.String() + `""]`), "one long place, packed": pressed(`["/C//` + strings.Repeat("x", 3<<20) + `"]`),
	}
}

// FuzzParseInventory holds that what is read is stored and read again, and that no text lists more than an inventory may.
func FuzzParseInventory(f *testing.F) {
	for _, text := range bombs(f) {
		f.Add(text)
	}
	for _, text := range []string{
		`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/a/x ","apps/Deployment/b/d h/n"]}`,
		`{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/Node//n x","/Node//n h/n/k","/Node//n"]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseInventory(text, "u")
		if err != nil || got == nil {
			return
		}
		places := got.Places()
		if len(places) > mostPlaces {
			t.Fatalf("it lists %d", len(places))
		}
		for _, place := range places {
			if !got.Lists(place) || got.Without(place).Lists(place) {
				t.Fatalf("%v is not found, or stays", place)
			}
		}
		stored, err := got.Encode("u")
		if err != nil {
			return // JSON has no such time
		}
		again, err := ParseInventory(stored, "u")
		if err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		for i, place := range again.Places() {
			title, known := got.Title(places[i])
			if other, too := again.Title(place); place != places[i] && utf8.ValidString(text) || other != title && utf8.ValidString(text) || too != known {
				t.Fatalf("%v %q comes back as %v %q", places[i], title, place, other)
			}
		}
	})
}

// TestALabelProvesNothing holds for what a label counts, with an inventory and without one.
func TestALabelProvesNothing(t *testing.T) {
	labelled := func(namespace string, made time.Time) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: tree{"kind": "ConfigMap", "apiVersion": "v1"}}
		u.SetName("c")
		u.SetNamespace(namespace)
		u.SetLabels(map[string]string{keys().Label: "u-1"})
		u.SetAnnotations(map[string]string{keys().Owner: owner().Name().String(), keys().Applied: bookkeeping.AppliedMark + "x"})
		u.SetCreationTimestamp(metav1.NewTime(made))
		return u
	}
	refers := func(namespace string) *unstructured.Unstructured {
		u, yes := labelled(namespace, begun()), true
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Foo", Name: "f", UID: "u-1", Controller: &yes}})
		return u
	}
	inventory := (*Inventory)(nil).With(begun(), at(configMapAt("there", "c")))
	anywhere := owner()
	anywhere.Namespaced, anywhere.Object = false, anywhere.Object.DeepCopy()
	anywhere.Object.SetNamespace("")
	space := anywhere
	space.Object = &unstructured.Unstructured{Object: tree{"apiVersion": "v1", "kind": "Namespace", "metadata": tree{"name": "there", "uid": "u-1"}}}
	tests := map[string]struct {
		owner     Owner
		inventory *Inventory
		closed    bool
		live      *unstructured.Unstructured
		has, ours bool
	}{
		"what the inventory lists":                                {owner(), inventory, true, labelled("there", begun().Add(time.Hour)), true, true},
		"another place":                                           {owner(), inventory, true, labelled("here", begun().Add(time.Hour)), false, false},
		"made before the inventory, where it is wanted":           {owner(), inventory, true, labelled("here", begun().Add(-time.Second)), false, true},
		"made in its first second":                                {owner(), inventory, false, labelled("here", begun()), false, true},
		"made in its first second, when all have been entered":    {owner(), inventory, true, labelled("here", begun()), false, false},
		"no inventory yet, where it is wanted":                    {owner(), nil, false, labelled("here", begun()), false, true},
		"a reference in the owner's namespace":                    {owner(), nil, false, refers("ns"), true, true},
		"a reference across namespaces":                           {owner(), inventory, false, refers("there"), false, false},
		"a reference to an owner that is in no namespace":         {anywhere, inventory, true, refers("here"), false, false},
		"the same, and the inventory lists it":                    {anywhere, inventory, true, refers("there"), true, true},
		"the same, made before the inventory, where it is wanted": {anywhere, nil, false, refers("here"), false, true},
		"a reference from what is in no namespace either":         {anywhere, inventory, true, refers(""), true, true},
		"a reference to the namespace that it is in":              {space, nil, false, refers("there"), true, true},
		"a reference to another namespace":                        {space, inventory, true, refers("here"), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.owner.Inventory, tt.owner.Closed = tt.inventory, tt.closed
			ours, by := tt.owner.Owned(tt.live)
			if tt.owner.Has(tt.live) != tt.has || ours != tt.ours || !ours && by == "" {
				t.Errorf("has %v, ours %v, by %q", tt.owner.Has(tt.live), ours, by)
			}
		})
	}
}
