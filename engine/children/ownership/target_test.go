// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestTargetManagersFit holds that each target has a field manager of its own that the API server takes.
func TestTargetManagersFit(t *testing.T) {
	long, uid := strings.Repeat("x", 63), "6f1c2a0e-8a55-4a5e-8d0f-0b6a2c9d1e2f"
	if got, want := TargetManager("op", "zone", "", "u"), "op/patch/zone/u"; got != want {
		t.Errorf("the manager is %s, want %s", got, want)
	}
	seen := map[string]string{}
	for _, handler := range []string{"zone", "zone.1", long, long + "." + long} {
		for _, key := range []string{"", "a", "b", "a key of any text\n", long + long + long} {
			for _, operator := range []string{"op", long} {
				got := TargetManager(operator, handler, key, "6f1c2a0e-8a55-4a5e-8d0f-0b6a2c9d1e2f")
				if known := IsTargetManager(got, operator); known != (len(operator) < 40 || strings.HasPrefix(got, long)) || IsTargetManager(got, "other") || IsTargetManager("x"+got, operator) {
					t.Errorf("%s is known: %t", got, known)
				}
				of := fmt.Sprintf("%q", []string{operator, handler, key, uid})
				if len(got) > 128 || strings.ContainsAny(got, " \n") {
					t.Errorf("the manager of %s is %q", of, got)
				}
				if other := seen[got]; other != "" {
					t.Errorf("%s and %s have the manager %s", of, other, got)
				}
				seen[got] = of
			}
		}
	}
}

// TestTheInventoryKeepsTargets holds that targets are read as they were written, beside children, packed or not.
func TestTheInventoryKeepsTargets(t *testing.T) {
	node := Target{Place{schema.GroupKind{Kind: "Node"}, "", "n1"}, "zone", "", "op/patch/zone/u"}
	other := Target{Place{schema.GroupKind{Group: "apps", Kind: "Deployment"}, "ns", "web"}, "zone.step", "a key/with any\ttext", TargetManager(strings.Repeat("x", 63), "zone.step", strings.Repeat("k", 63), "u")}
	child := Place{schema.GroupKind{Kind: "ConfigMap"}, "other", "a"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var r *Inventory
	r = r.WithTarget(at, node).WithTarget(at, other).WithTarget(at, node).With(at, map[Place]string{child: "app/a"})
	for range 2 {
		text, err := r.Encode("u")
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseInventory(text, "u")
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range []*Inventory{r, read} {
			if diff := cmp.Diff([]Target{node, other}, got.Targets()[:2]); diff != "" || !got.Lists(child) || !got.ListsTarget(node) {
				t.Errorf("inventory %d: targets (-want +got):\n%s\n%s", i, diff, text)
			}
		}
		for i := range 100 { // so that the next ones are packed
			more := node
			more.Handler, more.Name = "zzz", fmt.Sprintf("node-%d", i)
			r = r.WithTarget(at, more)
		}
	}
	if left := r.Without(child).WithoutTarget(node); left.ListsTarget(node) || !left.ListsTarget(other) || left.Lists(child) {
		t.Errorf("what is left is %v", left)
	}
	if left := r.WithoutTargets(); len(left.Targets()) > 0 || !left.Lists(child) {
		t.Errorf("without targets it has %v", left.Targets())
	}
	for i := range mostTargets {
		more := node
		more.Name = fmt.Sprintf("many-%d", i)
		r = r.WithTarget(at, more)
	}
	if _, err := r.Encode("u"); !dsl.IsPermanent(err) || !strings.Contains(err.Error(), "there is room for 2000") {
		t.Errorf("an inventory that is too large: %v", err)
	}
}

// TestFaultyTargetsAreNoInventory holds that what somebody has written into an inventory is refused where it is no target, and
// hides neither the other targets nor the children.
func TestFaultyTargetsAreNoInventory(t *testing.T) {
	for _, line := range []string{"", "/Node//n1", "/Node//n1 zone", "/Node//n1  m", "Node zone m", "/Node//n1 zone op/patch/zone/u more", "/Node//n1 %zz op/patch/zone/u", "/Node//n1 zone kubectl", "/Node//n1 zone op/patch/zone/another", "/Node//n1 zone op/u"} {
		text := `{"handwerk":1,"uid":"u","since":"2026-01-02T03:04:05Z","children":["/ConfigMap/ns/a"],"targets":["` + line + `","/Node//n2 zone op/patch/zone/u"]}`
		r, err := ParseInventory(text, "u")
		if got := r.Targets(); err == nil || len(got) != 1 || got[0].Name != "n2" || len(r.Places()) != 1 {
			t.Errorf("%q is read as %v beside %v: %v", line, got, r.Places(), err)
		}
	}
}

// TestAim holds which objects and fields an owner may patch.
func TestAim(t *testing.T) {
	tests := map[string]struct {
		owner, fields string
		cluster       bool // the target is cluster-scoped
		reach         dsl.Reach
		want          string
	}{
		"in the owner's namespace, which need not be named": {owner: "ns", fields: `{"data":{"a":"b"}}`},
		"in another one":                    {owner: "ns", fields: `{"metadata":{"namespace":"other"},"data":{}}`, want: "patching ConfigMap other/c: it is not in the namespace of Foo ns/web; reach: cluster allows that"},
		"in another one, with the word":     {owner: "ns", fields: `{"metadata":{"namespace":"other"},"data":{}}`, reach: dsl.ReachCluster},
		"in none":                           {owner: "ns", fields: `{"data":{}}`, cluster: true, want: "patching ConfigMap c: it is not in the namespace of Foo ns/web; reach: cluster allows that"},
		"in none, for an owner in none":     {fields: `{"data":{}}`, cluster: true},
		"in one, for an owner in none":      {fields: `{"metadata":{"namespace":"other"},"data":{}}`},
		"in one that is not said":           {fields: `{"data":{}}`, want: "patching ConfigMap c: its namespace is missing: the object that is handled has none"},
		"in one, and it can have none":      {fields: `{"metadata":{"namespace":"other"},"data":{}}`, cluster: true, want: "patching ConfigMap other/c: it is cluster-scoped, and has no namespace"},
		"nothing":                           {owner: "ns", fields: `{}`, want: "patching ConfigMap ns/c: there is no field to own"},
		"a label of the operator":           {owner: "ns", fields: `{"metadata":{"labels":{"op.handwerk.dev/owner":"x"}}}`, want: "patching ConfigMap ns/c: metadata.labels.op.handwerk.dev/owner belongs to the operator itself"},
		"its inventory":                     {owner: "ns", fields: `{"metadata":{"annotations":{"op.handwerk.dev/children":"x"}}}`, want: "patching ConfigMap ns/c: metadata.annotations.op.handwerk.dev/children belongs to the operator itself"},
		"its finalizer":                     {owner: "ns", fields: `{"metadata":{"finalizers":["op.handwerk.dev/finalizer"]}}`, want: "patching ConfigMap ns/c: the finalizer op.handwerk.dev/finalizer belongs to the operator itself"},
		"a label of another operator":       {owner: "ns", fields: `{"metadata":{"labels":{"opx.handwerk.dev/owner":"x"}}}`},
		"a version, which would be a guard": {owner: "ns", fields: `{"metadata":{"resourceVersion":"1"}}`, want: "patching ConfigMap ns/c: metadata.resourceVersion belongs to the API server"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo"}}
			web.SetName("web")
			web.SetNamespace(tt.owner)
			fields := &unstructured.Unstructured{}
			if err := fields.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap",` + tt.fields[1:])); tt.fields != "{}" && err != nil {
				t.Fatal(err)
			}
			if tt.fields == "{}" {
				fields.Object = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
			}
			fields.SetName("c")
			err := Owner{Object: web, Namespaced: tt.owner != "", Keys: keys()}.CompletePatch(fields, !tt.cluster, tt.reach)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || err != nil && !dsl.IsPermanent(err) {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}
