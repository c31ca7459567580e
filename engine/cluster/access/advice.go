// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// Client wraps a client of a resource. Its errors about a missing right advise whether to update the operator's roles or to declare
// the right, and the Monitor checks the right. The 404 of a path that is not served becomes another error than NotFound, because
// handlers and package children/apply treat NotFound as a deleted object. Responses that may quote a Secret are withheld.
func (m *Monitor) Client(of dynamic.ResourceInterface, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return advising{of, m, gvr.Group == "" && gvr.Resource == "secrets"}
}

// advising is the client that Client returns.
type advising struct {
	dynamic.ResourceInterface
	monitor *Monitor
	// secrets is true if the objects are Secrets.
	secrets bool
}

// fault returns the error of a request for the log and for handlers: an answer that may quote a Secret is withheld.
func (a advising) fault(ctx context.Context, err error) error {
	advice, answer := a.monitor.advise(ctx, err)
	if a.secrets || dsl.Discreet(ctx) {
		return dsl.Withhold(answer, advice)
	}
	if status, is := errors.AsType[*apierrors.StatusError](answer); is && advice != "" {
		status.ErrStatus.Message += advice
	}
	return answer
}

// Get implements [dynamic.ResourceInterface], as the others.
func (a advising) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Get(ctx, name, options, sub...)
	return o, a.fault(ctx, err)
}

func (a advising) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := a.ResourceInterface.List(ctx, options)
	return list, a.fault(ctx, err)
}

func (a advising) Create(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Create(ctx, object, options, sub...)
	return o, a.fault(ctx, err)
}

func (a advising) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Patch(ctx, name, kind, data, options, sub...)
	return o, a.fault(ctx, err)
}

func (a advising) Apply(ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Apply(ctx, name, object, options, sub...)
	return o, a.fault(ctx, err)
}

func (a advising) Delete(ctx context.Context, name string, options metav1.DeleteOptions, sub ...string) error {
	return a.fault(ctx, a.ResourceInterface.Delete(ctx, name, options, sub...))
}

// unservedError is the error of a request to a path that the API server does not serve. It does not unwrap to
// client-go's NotFound.
type unservedError struct{ answer string }

// Error says what was not found.
func (e *unservedError) Error() string {
	return "the API server does not serve the resource now, which says nothing of the object: " + e.answer
}

// advise returns an error about a missing right in one line, with advice. If a 404 may be about the path, the catalog
// asks again which resources are served. Other errors are returned unchanged.
func (m *Monitor) advise(ctx context.Context, err error) (advice string, answer error) {
	if notfound.IsUnserved(err) {
		m.settings.Catalog.InvalidateOld()
		return "", &unservedError{err.Error()}
	}
	refusal := refused(err)
	if refusal == nil {
		return "", err
	}
	m.OnError(err)
	declare := ""
	if !refusal.anyIn(m.needed(ctx)) {
		declare = "declare it with " + refusal.declaration() + ", and "
	}
	status := &apierrors.StatusError{ErrStatus: *refusal.status.ErrStatus.DeepCopy()}
	status.ErrStatus.Message = refusal.text
	return "; allow it to the operator: " + declare + "operator rbac prints the roles", status
}
