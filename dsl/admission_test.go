// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnAdmissionHandlerHasItsObjectInATypeOfItsAuthor(t *testing.T) {
	type foo struct {
		Spec struct {
			Size  int64  `json:"size"`
			Color string `json:"color,omitempty"`
		} `json:"spec"`
	}
	fn := TypedAdmission(func(_ context.Context, r *TypedAdmissionRequest[foo]) error {
		if r.Old.Spec.Size > r.Object.Spec.Size {
			return Deny(metav1.StatusReasonInvalid, "from %d to %d", r.Old.Spec.Size, r.Object.Spec.Size)
		}
		r.Object.Spec.Color = "blue"
		return nil
	})
	ask := func(was, is int64) (*AdmissionRequest, error) {
		r := &AdmissionRequest{Patch: NewPatch(), Subject: Subject{
			Object: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": is}}}, Old: map[string]any{"spec": map[string]any{"size": was}},
		}}
		return r, fn(t.Context(), r)
	}
	if _, err := ask(3, 2); err == nil || err.Error() != "from 3 to 2" {
		t.Errorf("the error is %v", err)
	}
	r, err := ask(2, 3)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"color": "blue"}}, r.Patch.Object); diff != "" || err != nil {
		t.Errorf("the change is (-want +got):\n%s, %v", diff, err)
	}
}

func TestFaultsOfAdmissionHandlers(t *testing.T) {
	fn := func(context.Context, *AdmissionRequest) error { return nil }
	for _, tc := range []struct {
		name    string
		declare func(*Resource)
		want    string
	}{
		{"they need no other handlers", func(r *Resource) { r.Validate("a", fn) }, ""},
		{"filters and a timeout", func(r *Resource) {
			r.Validate("a", fn, Label("a", "b"), When(func(*Subject) (bool, error) { return true, nil }), Timeout(5e9))
		}, ""},
		{"a timeout with a part of a second", func(r *Resource) { r.Validate("a", fn, Timeout(1500*time.Millisecond)) }, "is 1.5s, and the API server waits for a webhook 1 to 30 whole seconds (want 2s)"},
		{"a timeout below a second", func(r *Resource) { r.Validate("a", fn, Timeout(time.Nanosecond)) }, "is 1ns, and the API server waits for a webhook 1 to 30 whole seconds (want 1s)"},
		{"a timeout above the longest", func(r *Resource) { r.Validate("a", fn, Timeout(time.Minute)) }, "is 1m0s, and the API server waits for a webhook 1 to 30 whole seconds (want 30s)"},
		{"the longest timeout", func(r *Resource) { r.Validate("a", fn, Timeout(30*time.Second)) }, ""},
		{"an id twice", func(r *Resource) { r.Validate("a", fn); r.Mutate("A", fn) }, "the id is used twice"},
		{"an id that is no part of a name", func(r *Resource) { r.Validate("a_b", fn) }, `want letters and digits, with '-' or '.' between them, at most 63, found "a_b"`},
		{"an id with an empty part", func(r *Resource) { r.Validate("a..b", fn) }, `want letters and digits, with '-' or '.' between them, at most 63, found "a..b"`},
		{"an unknown operation", func(r *Resource) { r.Validate("a", fn, Operations("PATCH")) }, `unknown operation "PATCH" (want CREATE, UPDATE, DELETE or CONNECT)`},
		{"a change of what is deleted", func(r *Resource) { r.Mutate("a", fn, Operations(admissionv1.Delete)) }, "a deletion stores no object that could be changed"},
		{"an unknown policy for failures", func(r *Resource) { r.Validate("a", fn, FailurePolicy("Maybe")) }, `unknown policy "Maybe" (want Fail or Ignore)`},
		{"retries", func(r *Resource) { r.Validate("a", fn, Retries(3)) }, "is not for admission handlers, which answer a request once"},
		{"a label of what is connected to", func(r *Resource) { r.Validate("a", fn, Label("a", "b"), Operations(admissionv1.Connect)) }, ofAnotherKind("to connect")},
		{"a selector of fields for a scale", func(r *Resource) { r.FieldSelector = "a=b"; r.Mutate("a", fn, Subresources("scale")) }, ofAnotherKind("for scale")},
		{"a selector for a status", func(r *Resource) { r.LabelSelector = "a=b"; r.Mutate("a", fn, Subresources("status")) }, ""},
		{"a scale without a selector", func(r *Resource) { r.Validate("a", fn, Subresources("scale")) }, ""},
		{"a wrong selector of namespaces", func(r *Resource) { r.NamespaceSelector = "a=(b)"; r.Validate("a", fn) }, "want a label selector: unable to parse requirement: found '(', expected: identifier"},
		{"a selector of namespaces that compares numbers", func(r *Resource) { r.NamespaceSelector = "a>1"; r.Validate("a", fn) }, "a>1: " + noComparison},
		{"a scope that compares numbers", func(r *Resource) { r.op.Scope.NamespaceSelector = "a<1"; r.Validate("a", fn) }, "a<1: " + noComparison},
		{"a selector that compares numbers", func(r *Resource) { r.LabelSelector = "a>1"; r.Validate("a", fn) }, "a>1: " + noComparison},
		{"a resource without a version", func(r *Resource) { r.Name.Version = ""; r.Validate("a", fn) }, "a resource with rules about requests needs a version: the one whose form they read"},
		{"an option of admission on a handler", func(r *Resource) {
			r.OnCreate("a", func(context.Context, *Request) error { return nil }, FailurePolicy(registrationv1.Ignore))
		}, "is only for admission handlers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op := New("demo")
			op.Resource("foos.v1.example.com", tc.declare)
			got := ""
			if err := op.Validate(); err != nil {
				if fault, is := errors.AsType[*Fault](err); is {
					got = fault.Err.Error()
				} else {
					got = fmt.Sprint(err)
				}
			}
			if got != tc.want {
				t.Errorf("the fault is %q, want %q", got, tc.want)
			}
		})
	}
}

const noComparison = "rules about requests cannot compare numbers in labels (want =, !=, in, notin or the key alone)"

// ofAnotherKind is the fault of a filter that no request could match.
func ofAnotherKind(request string) string {
	return "a request " + request + " has an object of another kind, so labels, annotations and fields never match; select by request.name or namespaces"
}
