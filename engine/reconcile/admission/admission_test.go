// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
)

// answer is what tests compare of a response.
type answer struct {
	Allowed  bool
	Patch    string
	Reason   metav1.StatusReason
	Message  string
	Code     int32
	Warnings []string
	Audit    map[string]string
}

func around() Surroundings {
	return Surroundings{Log: logr.Discard(), Related: func(*unstructured.Unstructured) dsl.Related { return nil }}
}

// decide lets a handler decide about an update of size 1 to size 2, and returns the answer.
func decide(t *testing.T, declare func(*dsl.Resource), adjust func(*admissionv1.AdmissionRequest)) answer {
	t.Helper()
	op := dsl.New("demo")
	foo := op.Resource("foos.v1.example.com", declare)
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	r := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Name: "a", Namespace: "shop",
		OldObject: runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"size":1}}`)},
		Object:    runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"size":2,"old":true}}`)},
	}
	if adjust != nil {
		adjust(r)
	}
	got := Decide(t.Context(), foo.Admissions()[0], r, around())
	out := answer{Allowed: got.Allowed, Patch: string(got.Patch), Warnings: got.Warnings, Audit: got.AuditAnnotations}
	if s := got.Result; s != nil {
		out.Reason, out.Message, out.Code = s.Reason, s.Message, s.Code
	}
	return out
}

func TestAHandlerDecidesAboutARequest(t *testing.T) {
	size := func(r *dsl.AdmissionRequest) int64 {
		n, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
		return n
	}
	validate := func(fn dsl.AdmissionFunc, options ...dsl.Option) func(*dsl.Resource) {
		return func(r *dsl.Resource) { r.Validate("v", fn, options...) }
	}
	mutate := func(fn dsl.AdmissionFunc, options ...dsl.Option) func(*dsl.Resource) {
		return func(r *dsl.Resource) { r.Mutate("m", fn, options...) }
	}
	deny := func(context.Context, *dsl.AdmissionRequest) error { return errors.New("no") }
	for _, tc := range []struct {
		name    string
		declare func(*dsl.Resource)
		adjust  func(*admissionv1.AdmissionRequest)
		want    answer
	}{
		{"no error admits", validate(func(_ context.Context, r *dsl.AdmissionRequest) error {
			if size(r) != 2 || r.Old["spec"].(map[string]any)["size"] != int64(1) || len(r.Diff) != 3 {
				return errors.New("the request is another one")
			}
			r.Warn("size is %d", size(r))
			return nil
		}), nil, answer{Allowed: true, Warnings: []string{"size is 2"}}},
		{"an error forbids", validate(deny), nil, answer{Reason: metav1.StatusReasonForbidden, Message: "no", Code: 403}},
		{"Deny has a reason", validate(func(_ context.Context, r *dsl.AdmissionRequest) error {
			return dsl.Deny(metav1.StatusReasonInvalid, "size %d", size(r))
		}), nil, answer{Reason: metav1.StatusReasonInvalid, Message: "size 2", Code: 422}},
		{"a filter that does not match admits", validate(deny, dsl.Label("a", "c")), nil, answer{Allowed: true}},
		{"a filter that fails refuses", validate(deny, dsl.When(func(*dsl.Subject) (bool, error) { return false, errors.New("lost") })), nil,
			answer{Reason: metav1.StatusReasonInvalid, Message: "lost", Code: 422}},
		{"an undecided handler that changes objects answers as such a policy", mutate(func(context.Context, *dsl.AdmissionRequest) error { return dsl.Undecided(errors.New("lost")) }), nil,
			answer{Reason: metav1.StatusReasonInvalid, Message: "lost", Code: 403}},
		{"an undecided handler may have a reason", validate(func(context.Context, *dsl.AdmissionRequest) error {
			return dsl.Undecided(dsl.Deny(metav1.StatusReasonTooManyRequests, "busy"))
		}), nil, answer{Reason: metav1.StatusReasonTooManyRequests, Message: "busy", Code: 429}},
		{"a filter that fails is ignored by policy", validate(deny, dsl.FailurePolicy(registrationv1.Ignore), dsl.When(func(*dsl.Subject) (bool, error) { return false, errors.New("lost") })), nil,
			answer{Allowed: true}},
		{"a filter that fails only warns where the handler does", func(r *dsl.Resource) {
			fails := func(*dsl.Subject) (bool, error) { return false, errors.New("lost") }
			r.Admit(dsl.Handler{ID: "v", Retries: dsl.Unlimited, When: fails, Admission: &dsl.Admission{Func: deny, Action: dsl.ActionWarn}})
		}, nil, answer{Allowed: true, Warnings: []string{"lost"}}},
		{"a decision stands whatever the policy for failures", validate(deny, dsl.FailurePolicy(registrationv1.Ignore)), nil, answer{Reason: metav1.StatusReasonForbidden, Message: "no", Code: 403}},
		{"a handler that cannot decide follows the policy for failures", validate(func(context.Context, *dsl.AdmissionRequest) error { return dsl.Undecided(errors.New("no")) }, dsl.FailurePolicy(registrationv1.Ignore)), nil,
			answer{Allowed: true}},
		{"a warning admits", func(r *dsl.Resource) {
			r.Admit(dsl.Handler{ID: "v", Retries: dsl.Unlimited, Admission: &dsl.Admission{Func: deny, Action: dsl.ActionWarn}})
		}, nil, answer{Allowed: true, Warnings: []string{"no"}}},
		{"an audit admits", func(r *dsl.Resource) {
			r.Admit(dsl.Handler{ID: "v", Retries: dsl.Unlimited, Admission: &dsl.Admission{Func: deny, Action: dsl.ActionAudit}})
		}, nil, answer{Allowed: true, Audit: map[string]string{"v": "no"}}},
		{"a deletion shows the object that goes", validate(func(_ context.Context, r *dsl.AdmissionRequest) error {
			return dsl.Deny(metav1.StatusReasonForbidden, "size %d", size(r))
		}, dsl.Operations(admissionv1.Delete)), func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Object = admissionv1.Delete, runtime.RawExtension{}
		}, answer{Reason: metav1.StatusReasonForbidden, Message: "size 1", Code: 403}},
		{"a change is a minimal JSON patch", mutate(func(_ context.Context, r *dsl.AdmissionRequest) error {
			r.Patch.Set("spec.size", 2) // it is so already
			r.Patch.Set("spec.color", "blue")
			r.Patch.Remove("spec.old")
			r.Patch.Label("x.io/y", "z")
			r.Patch.Annotate("n", "1")
			return nil
		}), nil, answer{Allowed: true, Patch: `[{"op":"add","path":"/metadata/annotations","value":{"n":"1"}},{"op":"add","path":"/metadata/labels/x.io~1y","value":"z"},{"op":"remove","path":"/spec/old"},{"op":"add","path":"/spec/color","value":"blue"}]`}},
		{"no change is no patch", mutate(func(context.Context, *dsl.AdmissionRequest) error { return nil }), nil, answer{Allowed: true}},
		{"a wrong change is an error", mutate(func(_ context.Context, r *dsl.AdmissionRequest) error {
			r.Patch.Set("status.x", 1)
			return nil
		}), nil, answer{Reason: metav1.StatusReasonInternalError, Message: "setting status.x: status is not set with Set", Code: 500}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(t, tc.declare, tc.adjust)); diff != "" {
				t.Errorf("the answer is (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPanicOfAFilterIsTheCallers holds that the text of a panic, which may have any value, does not go to the client.
func TestAPanicOfAFilterIsTheCallers(t *testing.T) {
	defer func() {
		if got := recover(); got != "secret text" {
			t.Errorf("the caller sees the panic %v", got)
		}
	}()
	got := decide(t, func(r *dsl.Resource) {
		r.Validate("a", func(context.Context, *dsl.AdmissionRequest) error { return nil }, dsl.When(func(*dsl.Subject) (bool, error) { panic("secret text") }))
	}, nil)
	t.Errorf("the client is told %q", got.Message)
}

// FuzzDecide holds that no request makes the decision itself panic, and that patches are valid JSON.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{"operation":"CREATE","object":{"spec":{"a":1}}}`))
	f.Add([]byte(`{"operation":"DELETE","oldObject":{"metadata":null}}`))
	f.Add([]byte(`{"operation":"UPDATE","object":[],"oldObject":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r admissionv1.AdmissionRequest
		if json.Unmarshal(text, &r) != nil {
			return
		}
		foo := dsl.New("demo").Resource("foos.v1.example.com", nil)
		foo.Mutate("m", func(_ context.Context, r *dsl.AdmissionRequest) error {
			r.Patch.Set("spec.a.b", r.Old)
			r.Patch.Label("x", "y")
			return nil
		}, dsl.LabelAbsent("no"))
		got := Decide(t.Context(), foo.Admissions()[0], &r, around())
		if got.Patch != nil && !json.Valid(got.Patch) {
			t.Errorf("patch %q is no JSON", got.Patch)
		}
	})
}
