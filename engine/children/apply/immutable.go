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

// classified returns the error of an update as a [dsl.ImmutableError] if the API server refuses the change of fields, and not their
// new values. It has no word for that: each kind, and each rule of a CRD, says it in another way. So all fields that it names must
// differ, and it must take the new values in another object, as a dry run shows.
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

// acceptsNew asks whether the API server would create the desired object, in a dry run. The new object has another name,
// and the child still exists, so errors about the name or a value that only one object can have, such as a node port, do
// not count. Nor does a quota: it is checked after the validation, and the deleted child frees its share.
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

// fixed returns the error of a child whose fields cannot be changed. It is a [FixedError] if the template has changed. If somebody else
// has set one of the fields, a new child would lose it, so the API server's error stays as it is.
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
	if a.mark(live) != "" && (ch.deed == Updated && !ch.applied || own && ch.isSecret()) {
		return &FixedError{Live: live, ImmutableError: err}
	}
	return err
}

// causesOf returns the causes of an error about an object that is not valid.
func causesOf(err error) []metav1.StatusCause {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) || answer.Status().Reason != metav1.StatusReasonInvalid || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}
