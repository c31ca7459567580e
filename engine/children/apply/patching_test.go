// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// dropped finds no version but v1.
type dropped struct{}

func (dropped) KindOf(_ context.Context, gvk schema.GroupVersionKind) (discovery.Resource, error) {
	if gvk.Version != "v1" {
		return discovery.Resource{}, discovery.ErrMissing
	}
	return discovery.Resource{GVR: schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "foos"}}, nil
}

// serverWith is a server with one object. It refuses each apply with an error, returns the object for other patches unchanged, and
// counts both.
func serverWith(o *unstructured.Unstructured, refusal error) (c dynamic.ResourceInterface, applies, patches *int) {
	applies, patches = new(int), new(int)
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("get", "foos", func(clienttesting.Action) (bool, runtime.Object, error) { return true, o.DeepCopy(), nil })
	client.PrependReactor("patch", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.PatchAction).GetPatchType() == types.ApplyPatchType {
			*applies++
			return true, nil, refusal
		}
		*patches++
		return true, o.DeepCopy(), nil
	})
	return client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}).Namespace("ns"), applies, patches
}

// fooOf is a Foo with a field of a manager.
func fooOf(t *testing.T, manager, version string) *unstructured.Unstructured {
	t.Helper()
	out := objectOf(t, "example.com/v1", "Foo", `{"metadata":{"name":"web","namespace":"ns","uid":"u-web","resourceVersion":"7"},"spec":{"size":1}}`)
	out.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "example.com/" + version, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`),
	}})
	return out
}

// TestARefusedPatchEnds holds that giving back fields ends with the server's error if it refuses that again and again, whatever is
// given up.
func TestARefusedPatchEnds(t *testing.T) {
	web := fooOf(t, "op/patch/h/u", "v1")
	required := field.ErrorList{field.Required(field.NewPath("spec", "size"), "")}
	client, applies, _ := serverWith(web, apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, "web", required))
	p := Patching{Client: client, Renewer: NewRenewer(dsl.New("op"), dropped{}), Target: ownership.Target{Place: ownership.PlaceOf(web), Manager: "op/patch/h/u"}}
	if _, err := p.Release(t.Context(), web); !apierrors.IsInvalid(err) {
		t.Errorf("giving back ended with %v, want the refusal", err)
	}
	if *applies != releaseRetries+1 {
		t.Errorf("it was tried %d times, want %d", *applies, releaseRetries+1)
	}
}

// TestEntriesOfADroppedVersionAreRenewedOnTheSameObject holds that a refusal of an apply for an own entry renews it and returns the
// object, unless another object has got the name meanwhile.
func TestEntriesOfADroppedVersionAreRenewedOnTheSameObject(t *testing.T) {
	refusal := apierrors.NewInternalError(errors.New(drift.RejectedVersionText + "example.com/v1alpha1"))
	tests := map[string]struct {
		uid     types.UID
		renewed int
	}{
		"the same object":             {"u-web", 1},
		"whichever has the name":      {"", 1},
		"another object of that name": {"u-earlier", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			client, _, patches := serverWith(fooOf(t, "op", "v1alpha1"), nil)
			renewed, err := NewRenewer(dsl.New("op"), dropped{}).RenewRejected(t.Context(), client, "web", tt.uid, refusal)
			if renewed == nil && !errors.Is(err, refusal) || renewed != nil && err != nil {
				t.Errorf("the error is %v", err)
			}
			if *patches != tt.renewed || (renewed != nil) != (tt.renewed > 0) {
				t.Errorf("it was renewed %d times, want %d; the object is %v", *patches, tt.renewed, renewed)
			}
		})
	}
}
