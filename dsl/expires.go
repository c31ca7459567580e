// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RunsAgain says why a handler that [Handler.Restores] may not have a child that [Expires], and what to do instead.
// Such a handler cannot know whether a missing Job has run: it may have finished and been deleted while no process ran.
const RunsAgain = "the TTL takes the object away, and the handler would make it again, so that it runs again and again: " +
	"leave the TTL out, or take causes: [create] for one run, causes: [create, update] with a field for one run for each of its values, " +
	"or a CronJob for runs by time"

// ExpiringError is the error about an object that its TTL deletes and the handler would make again.
type ExpiringError struct {
	// Field is the TTL.
	Field Path
}

func (e *ExpiringError) Error() string { return e.Field.String() + ": " + RunsAgain }

// expiring are the fields by which the controllers of kinds delete a finished object.
var expiring = map[schema.GroupKind]Path{
	{Group: "batch", Kind: "Job"}:                             {"spec", "ttlSecondsAfterFinished"},
	{Group: "batch.volcano.sh", Kind: "Job"}:                  {"spec", "ttlSecondsAfterFinished"},
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}:                {"spec", "ttlSecondsAfterFinished"},
	{Group: "argoproj.io", Kind: "Workflow"}:                  {"spec", "ttlStrategy"},
	{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}: {"spec", "timeToLiveSeconds"},
	{Group: "kubeflow.org", Kind: "JAXJob"}:                   {"spec", "runPolicy", "ttlSecondsAfterFinished"},
	{Group: "kubeflow.org", Kind: "MPIJob"}:                   {"spec", "runPolicy", "ttlSecondsAfterFinished"},
	{Group: "kubeflow.org", Kind: "PaddleJob"}:                {"spec", "runPolicy", "ttlSecondsAfterFinished"},
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:               {"spec", "runPolicy", "ttlSecondsAfterFinished"},
	{Group: "kubeflow.org", Kind: "TFJob"}:                    {"spec", "runPolicy", "ttlSecondsAfterFinished"},
	{Group: "kubeflow.org", Kind: "XGBoostJob"}:               {"spec", "runPolicy", "ttlSecondsAfterFinished"},
}

// TTLField returns the field by which objects of a kind are deleted some time after they have finished; nil for other kinds.
func TTLField(kind schema.GroupKind) Path { return expiring[kind] }

// Expires returns the field because of which an object is deleted some time after it has finished; nil when it stays.
func Expires(o *unstructured.Unstructured) Path {
	field := TTLField(o.GroupVersionKind().GroupKind())
	if field == nil {
		return nil
	}
	if ttl, _, _ := unstructured.NestedFieldNoCopy(o.Object, field...); ttl == nil {
		return nil
	}
	return field
}

// restoring is the key of contexts of [Restoring].
type restoring struct{}

// Restoring returns the context of code that makes missing children again, or does not: see [Handler.Restores].
func Restoring(ctx context.Context, restores bool) context.Context {
	return context.WithValue(ctx, restoring{}, restores)
}

// CheckLasting returns a permanent [*ExpiringError] if code with the context makes the object again once its TTL has taken it away.
func CheckLasting(ctx context.Context, o *unstructured.Unstructured) error {
	field := Expires(o)
	if restores, _ := ctx.Value(restoring{}).(bool); !restores || field == nil {
		return nil
	}
	return Permanent(&ExpiringError{Field: field})
}
