// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Hook is an admission webhook.
type Hook struct {
	// Mutating: it may change objects, and is called before the others.
	Mutating bool
	registrationv1.ValidatingWebhook
}

// Hooks returns the webhooks of a configuration of either kind.
func Hooks(configuration map[string]any) (out []Hook, err error) {
	var c registrationv1.ValidatingWebhookConfiguration // the other kind has one field more
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(configuration, &c); err != nil {
		return nil, err
	}
	for _, w := range c.Webhooks {
		out = append(out, Hook{Mutating: configuration["kind"] == "MutatingWebhookConfiguration", ValidatingWebhook: w})
	}
	return out, nil
}

// usualPatience is how long a server waits for a webhook that does not say so.
const usualPatience = 10 * time.Second

// Review asks a webhook about a request. It returns the object as the webhook has changed it, and warnings for the client. An error is
// the response.
func (h Hook) Review(ctx context.Context, a Attributes, dial Dial) (object map[string]any, warnings []string, err error) {
	answer, err := h.call(ctx, a, dial)
	if err == nil && answer == nil {
		err = errors.New("webhook response was absent")
	}
	if err != nil {
		if h.FailurePolicy != nil && *h.FailurePolicy == registrationv1.Ignore {
			return a.Object, nil, nil
		}
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: %w", h.Name, err))
	}
	if !answer.Allowed {
		return nil, answer.Warnings, h.denial(answer.Result)
	}
	if object, err = patched(a.Object, answer.Patch); err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	return object, answer.Warnings, nil
}

func (h Hook) call(ctx context.Context, a Attributes, dial Dial) (*admissionv1.AdmissionResponse, error) {
	patience := usualPatience
	if h.TimeoutSeconds != nil {
		patience = time.Duration(*h.TimeoutSeconds) * time.Second
	}
	target, err := New(h.address(), h.ClientConfig.CABundle, patience, dial)
	if err != nil {
		return nil, err
	}
	request, err := a.request()
	if err != nil {
		return nil, err
	}
	review := admissionv1.AdmissionReview{Request: request}
	review.APIVersion, review.Kind = admissionv1.SchemeGroupVersion.String(), "AdmissionReview"
	var answer admissionv1.AdmissionReview
	if err := target.Call(ctx, &review, &answer); err != nil {
		return nil, err
	}
	if r := answer.Response; r != nil && r.UID != request.UID {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", request.UID, r.UID)
	}
	return answer.Response, nil
}

// address returns the URL of a webhook.
func (h Hook) address() string {
	if h.ClientConfig.URL != nil {
		return *h.ClientConfig.URL
	}
	s := h.ClientConfig.Service
	if s == nil { // not reached on a server with schemas
		return ""
	}
	return ServiceAddress(s.Namespace, s.Name, s.Port, s.Path)
}

// denial returns the error of a request that a webhook denies.
func (h Hook) denial(result *metav1.Status) error {
	if result == nil {
		result = &metav1.Status{}
	}
	out := *result
	out.Status, out.Code = metav1.StatusFailure, max(out.Code, http.StatusBadRequest)
	why := fmt.Sprintf("admission webhook %q denied the request", h.Name)
	switch {
	case out.Message != "":
		out.Message = why + ": " + out.Message
	case out.Reason != "":
		out.Message = why + ": " + string(out.Reason)
	default:
		out.Message = why + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: out}
}

// request is what a webhook is asked.
func (a Attributes) request() (*admissionv1.AdmissionRequest, error) {
	kind := metav1.GroupVersionKind{Group: a.Kind.Group, Version: a.Kind.Version, Kind: a.Kind.Kind}
	resource := metav1.GroupVersionResource{Group: a.Resource.Group, Version: a.Resource.Version, Resource: a.Resource.Resource}
	requestKind, requestResource := kind, resource
	requestKind.Version, requestResource.Version = a.RequestVersion, a.RequestVersion
	out := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: kind, RequestKind: &requestKind, Resource: resource, RequestResource: &requestResource,
		SubResource: a.Subresource, RequestSubResource: a.Subresource, Name: a.Name, Namespace: a.Namespace,
		Operation: admissionv1.Operation(a.Operation), UserInfo: a.User, DryRun: &a.DryRun,
	}
	for _, each := range []struct {
		object map[string]any
		into   *runtime.RawExtension
	}{{a.Object, &out.Object}, {a.Old, &out.OldObject}} {
		if each.object == nil {
			continue
		}
		data, err := json.Marshal(each.object)
		if err != nil {
			return nil, err
		}
		each.into.Raw = data
	}
	return out, nil
}

// patched returns an object with the patch of a webhook.
func patched(object map[string]any, patch []byte) (map[string]any, error) {
	if len(patch) == 0 || object == nil {
		return object, nil
	}
	change, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	after, err := change.Apply(before)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, utiljson.Unmarshal(after, &out)
}
