// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package expiry knows which objects a TTL deletes, and why some handlers may not have such children.
package expiry

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// RunsAgain says why a handler that restores missing children may not apply an object with a TTL, and what to do instead;
// see [dsl.Handler.Restores]. Such a handler cannot know whether a missing Job has run: it may have finished and been
// deleted while no process ran.
const RunsAgain = "the TTL deletes the object and the handler would create it again: " +
	"remove the TTL; or use causes: [create] to run once, causes: [create, update] with field to run once per value, or a CronJob"

// RunsBesideOthers says why an object with a TTL may not be applied together with others, and what to do instead.
const RunsBesideOthers = "the handler applies all its children again while one of them is rejected or not ready, and would create " +
	"an object that the TTL has deleted meanwhile: apply it in a step or in a handler of its own"

// Error is the error about an object that its TTL deletes and the handler would create again.
type Error struct {
	// Field is the TTL.
	Field dsl.Path
}

func (e *Error) Error() string { return e.Field.String() + ": " + RunsAgain }

// fields are those by which the controllers of kinds delete a finished object.
var fields = map[schema.GroupKind]dsl.Path{
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

// Field returns the field by which objects of a kind are deleted some time after they have finished; nil for other kinds.
func Field(kind schema.GroupKind) dsl.Path { return fields[kind] }

// restoring is the key of contexts of [Restoring].
type restoring struct{}

// Restoring returns a context that tells [Check] whether the code of a handler creates missing children again. The client
// of a request gets the context of the call, and knows no handler.
func Restoring(ctx context.Context, restores bool) context.Context {
	return context.WithValue(ctx, restoring{}, restores)
}

// Check returns a permanent [*Error] if an object has a TTL, and code with the context would create it again.
func Check(ctx context.Context, o *unstructured.Unstructured) error {
	field := Field(o.GroupVersionKind().GroupKind())
	if restores, _ := ctx.Value(restoring{}).(bool); !restores || field == nil {
		return nil
	}
	if ttl, _, _ := unstructured.NestedFieldNoCopy(o.Object, field...); ttl == nil {
		return nil
	}
	return dsl.Permanent(&Error{Field: field})
}
