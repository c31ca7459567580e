// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// refusal returns the error about an object that the owner may not have. It adds advice if the remedy is not obvious.
func (a Applier) refusal(live *unstructured.Unstructured, by string) error {
	out := notOwned(live)
	out.Owner = by
	name, _ := ownership.ParsePlace(live.GetAnnotations()[a.Owner.Keys.Owner])
	controller := metav1.GetControllerOfNoCopy(live)
	switch {
	case a.Owner.ClaimsUnproven(live):
		says := "has the label of this object"
		if controller != nil {
			says = "names this object as its controller"
		}
		out.Owner = ""
		out.Advice = fmt.Sprintf("it %s, but is not in its inventory of children (annotation %s): delete it, or give the child another name",
			says, a.Owner.Keys.Inventory)
	case controller != nil:
	case name == a.Owner.Name():
		out.Advice = "it is not garbage-collected, as it has no owner reference: delete it, or give the child another name"
	}
	return out
}

func notOwned(u *unstructured.Unstructured) *dsl.NotOwnedError {
	return &dsl.NotOwnedError{Resource: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
