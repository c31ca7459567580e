// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

func owner(t *testing.T) ownership.Owner {
	t.Helper()
	web := objectOf(t, "example.com/v1", "Foo", `{"metadata":{"namespace":"ns","uid":"u-1"}}`)
	web.SetName("f")
	return ownership.Owner{Object: web, Namespaced: true, Keys: ownership.KeysOf(dsl.New("op"))}
}

// TestObjectsOfOthersAreRefused holds which objects at the place of a child are adopted, and which are an error.
func TestObjectsOfOthersAreRefused(t *testing.T) {
	of := owner(t)
	tests := map[string]struct {
		metadata string
		policy   dsl.Adoption
		adopts   bool
	}{
		"an object without an owner is adopted where the policy says so": {`{}`, dsl.AdoptIfUnowned, true},
		"an object without an owner is refused otherwise":                {`{}`, dsl.AdoptNever, false},
		"an object without an owner is refused without a policy":         {`{}`, "", false},
		"an object with a controller is refused": {
			`{"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"t","controller":true}]}`, dsl.AdoptIfUnowned, false,
		},
		"an object with the label of another owner is refused": {`{"labels":{"` + of.Keys.Label + `":"u-2"}}`, dsl.AdoptIfUnowned, false},
		"an object that is being deleted is refused":           {`{"deletionTimestamp":"2026-01-01T00:00:00Z"}`, dsl.AdoptIfUnowned, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := objectOf(t, "v1", "ConfigMap", `{"metadata":`+tt.metadata+`}`)
			live.SetNamespace("ns")
			stale, err := Applier{Owner: of, Adopt: tt.policy}.Stale(live, live)
			if stale != tt.adopts || errors.Is(err, dsl.ErrNotOwned) == tt.adopts {
				t.Errorf("stale is %v, and the error is %v", stale, err)
			}
		})
	}
}

func TestATieThatWasCutIsPutBack(t *testing.T) {
	a := Applier{Owner: owner(t), Settled: &Settled{Memory: &SettledMemory{}}}
	desired := objectOf(t, "v1", "ConfigMap", `{"metadata":{"name":"c"},"data":{"n":"1"}}`)
	if err := a.Owner.Complete(desired, true, dsl.ChildSpec{}); err != nil {
		t.Fatal(err)
	}
	cut := func(edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
		live := desired.DeepCopy()
		live.SetOwnerReferences(nil)
		edit(live)
		return live
	}
	another := true
	tests := map[string]struct {
		live  *unstructured.Unstructured
		stale bool
		ours  bool
	}{
		"what was made from the same is": {cut(func(*unstructured.Unstructured) {}), true, true},
		"what was made from something else": {cut(func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{a.Owner.Keys.Applied: bookkeeping.AppliedMark + "x"})
		}), false, false},
		"what was not made": {cut(func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), false, false},
		"what somebody else has come to own": {cut(func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "K", Name: "k", UID: "k", Controller: &another}})
		}), false, false},
		"what another operator has taken since": {cut(func(u *unstructured.Unstructured) {
			notes := u.GetAnnotations()
			notes["x.example.com/owner"], notes["x.example.com/applied"] = "g/K/ns/n", bookkeeping.AppliedMark+"x"
			u.SetAnnotations(notes)
		}), false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stale, err := a.Stale(desired, test.live)
			if stale != test.stale || (err == nil) != test.ours {
				t.Errorf("stale %v, error %v", stale, err)
			}
		})
	}
}
