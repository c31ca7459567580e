// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RunsAgain says why a handler that makes missing children again may not have a Job that [Expires], and what to do instead.
// Such a handler cannot know whether a missing Job has run: it may have finished and been deleted while no process ran.
const RunsAgain = "the TTL takes the Job away, and the handler would make it again, so that it runs again and again: leave the TTL out, or have a handler with causes: [create] make the Job once"

// Expires reports whether an object is a Job that Kubernetes deletes some time after it has finished.
func Expires(o *unstructured.Unstructured) bool {
	if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	ttl, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished")
	return found && ttl != nil
}
