// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission lets admission handlers decide about requests to write objects.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Surroundings are the inputs of a handler besides the request.
type Surroundings struct {
	// Prefix begins the operator's marks on objects.
	Prefix string
	// Indexes are the operator's. Related returns the objects that the relations of the resource select for an object.
	Indexes dsl.Indexes
	Related func(o *unstructured.Unstructured) dsl.Related
	// Secrets say which values may come from Secrets.
	Secrets dsl.Secrets
	Log     logr.Logger
}

// Decide lets a handler decide about a request, and returns the response. Panics of the handler and of its filters pass: the caller logs
// them, and tells the client no more than that.
func Decide(ctx context.Context, h *dsl.Handler, r *admissionv1.AdmissionRequest, around Surroundings) *admissionv1.AdmissionResponse {
	request, err := requestOf(h, r, around)
	if err != nil {
		return refused(err)
	}
	if applies, err := matches(h, request); err != nil || !applies {
		if err != nil {
			return judged(h, request, dsl.Undecided(err))
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	var before *unstructured.Unstructured
	if h.Admission.Mutates {
		before = request.Object.DeepCopy()
	}
	if err = h.Admission.Func(ctx, request); err != nil {
		return judged(h, request, err)
	}
	if err = request.Patch.Err(); err != nil {
		return refused(err)
	}
	out := &admissionv1.AdmissionResponse{Allowed: true, Warnings: request.Warnings}
	if h.Admission.Mutates && r.Operation != admissionv1.Delete {
		out.Patch, err = changeOf(before, request.Patch)
		if err != nil {
			return refused(fmt.Errorf("changing the object: %w", err))
		}
	}
	return out
}

// requestOf returns the request as the handler sees it.
func requestOf(h *dsl.Handler, r *admissionv1.AdmissionRequest, around Surroundings) (*dsl.AdmissionRequest, error) {
	object, err := decoded(r.Object)
	if err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	old, err := decoded(r.OldObject)
	if err != nil {
		return nil, fmt.Errorf("decoding the old object: %w", err)
	}
	variable, err := variableOf(r)
	if err != nil {
		return nil, err
	}
	out := &dsl.AdmissionRequest{
		Operation: r.Operation, Subresource: r.SubResource, User: r.UserInfo, DryRun: r.DryRun != nil && *r.DryRun, Patch: dsl.NewPatch(),
		Subject: dsl.Subject{
			Prefix: around.Prefix, Handler: h.ID, Indexes: around.Indexes, Secrets: around.Secrets, Now: time.Now(), Vars: map[string]any{dsl.RequestVariable: variable},
			Log: around.Log.WithValues("namespace", r.Namespace, "name", r.Name, "handler", h.ID, "operation", r.Operation),
		},
	}
	out.Object = object
	if object == nil {
		out.Object = old
	}
	if out.Object == nil { // a request to connect may have none
		out.Object = &unstructured.Unstructured{Object: map[string]any{}}
	}
	if old != nil {
		out.Old = old.Object
		if object != nil {
			out.Diff = progress.Diff(old.Object, object.Object)
		}
	}
	out.Related = around.Related(out.Object)
	return out, nil
}

// decoded returns an object of a request; nil if there is none.
func decoded(raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	out := &unstructured.Unstructured{}
	return out, utiljson.Unmarshal(raw.Raw, &out.Object) // whole numbers stay whole
}

// variableOf returns the request as expressions and admission policies see it.
func variableOf(r *admissionv1.AdmissionRequest) (any, error) {
	bare := *r
	bare.UID, bare.Object, bare.OldObject = "", runtime.RawExtension{}, runtime.RawExtension{}
	out, err := plain.Value(&bare)
	if err != nil {
		return nil, fmt.Errorf("decoding the request: %w", err)
	}
	tree, isMap := out.(map[string]any)
	if !isMap {
		return nil, errors.New("decoding the request: it is no object")
	}
	for _, key := range []string{"uid", "object", "oldObject"} {
		delete(tree, key)
	}
	return tree, nil
}

// matches reports whether the handler's filters match.
func matches(h *dsl.Handler, r *dsl.AdmissionRequest) (bool, error) {
	if !filter.Matches(h, r.Object) {
		return false, nil
	}
	if h.When == nil {
		return true, nil
	}
	return h.When(&r.Subject)
}

// judged is the response for an error of the handler, by its action.
func judged(h *dsl.Handler, r *dsl.AdmissionRequest, err error) *admissionv1.AdmissionResponse {
	if dsl.IsUndecided(err) && h.Admission.FailurePolicy == registrationv1.Ignore {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: r.Warnings}
	}
	says := denial(h, err)
	switch h.Admission.Action {
	case dsl.ActionWarn:
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: append(r.Warnings, says.Message)}
	case dsl.ActionAudit:
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: r.Warnings, AuditAnnotations: map[string]string{h.ID: says.Message}}
	}
	return &admissionv1.AdmissionResponse{Result: &says, Warnings: r.Warnings}
}

// denial returns the status that the client gets for an error. An undecided handler answers as the API server does for a policy whose
// expression fails: clients must not see who evaluates a rule. For a policy that changes objects that is code 403, with reason Invalid.
func denial(h *dsl.Handler, err error) metav1.Status {
	out := dsl.Denial(err)
	if of := apierrors.APIStatus(nil); !dsl.IsUndecided(err) || errors.As(err, &of) {
		return out
	}
	if out.Reason = metav1.StatusReasonInvalid; !h.Admission.Mutates {
		out.Code = http.StatusUnprocessableEntity
	}
	return out
}

// refused is the response for an error that is not the handler's decision.
func refused(err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error(), Code: 500,
	}}
}

// changeOf returns the changes of a patch in an object as a JSON patch (RFC 6902); nil without any.
func changeOf(o *unstructured.Unstructured, wants *dsl.Patch) ([]byte, error) {
	wants.Status, wants.Conditions, wants.Offered, wants.Retired = map[string]any{}, nil, nil, nil
	laid, _, _, err := patch.Apply(o, wants, o.GetGeneration(), time.Time{})
	if err != nil {
		return nil, err
	}
	operations := difference(nil, nil, o.Object, laid.Object)
	if len(operations) == 0 {
		return nil, nil
	}
	return json.Marshal(operations)
}
