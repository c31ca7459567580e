// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// classified returns the error of an update as a [dsl.ImmutableError] if the API server rejects the change of fields,
// and not their new values. The server has no code for that: each kind, and each rule of a CRD, words it differently. So
// all fields in the error must differ, and a dry run must show that another object may have the new values.
func (a Applier) classified(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured, err error) error {
	causes := causesOf(err)
	refusesChange := func(cause metav1.StatusCause) bool {
		typed := cause.Type == metav1.CauseTypeFieldValueInvalid || cause.Type == metav1.CauseType("FieldValueForbidden")
		return typed && drift.Differs(desired, live, cause.Field)
	}
	if len(causes) == 0 || slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool { return !refusesChange(cause) }) {
		return err
	}
	if !a.acceptsNew(ctx, c, desired, live) {
		return err
	}
	return &dsl.ImmutableError{Answer: err, Causes: causes}
}

// acceptsNew reports whether the API server would create the desired object, in a dry run. The new object has another
// name, and the child still exists. So errors about the name do not count, nor errors about a value that only one object
// can have, such as a node port. A quota does not count either: it is checked after the validation, and the deleted
// child frees its share.
func (a Applier) acceptsNew(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured) bool {
	other := a.noted(desired)
	other.SetGenerateName(desired.GetName() + "-")
	other.SetName("")
	_, err := c.Create(ctx, other, metav1.CreateOptions{FieldManager: a.Manager, DryRun: []string{metav1.DryRunAll}})
	if err == nil || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return true
	}
	causes := causesOf(err)
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool { return drift.Differs(desired, live, cause.Field) })
}

// fixed returns the error of a child whose fields cannot be changed. It is a [FixedError] if the template has changed.
// If somebody else has set one of the fields, a new child would lose it, so the API server's error is returned.
func (ch change) fixed(ctx context.Context, live *unstructured.Unstructured, err *dsl.ImmutableError) error {
	a, own := ch.applier, true
	now, failed := ch.client.Get(ctx, ch.desired.GetName(), metav1.GetOptions{}) // caches lack managedFields
	if failed != nil || now.GetUID() != live.GetUID() {
		return err.Answer
	}
	by := drift.Rejected{Desired: ch.desired, Live: now, Manager: a.Manager}
	for _, cause := range err.Causes {
		if by.Others(cause.Field) {
			return err.Answer
		}
		own = own && by.Own(cause.Field)
	}
	if a.mark(live) != "" && (ch.operation == Updated && !ch.applied || own && ch.isSecret()) {
		return &FixedError{Live: live, ImmutableError: err}
	}
	return err
}

// causesOf returns the causes of an error about an invalid object.
func causesOf(err error) []metav1.StatusCause {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) || answer.Status().Reason != metav1.StatusReasonInvalid || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}
