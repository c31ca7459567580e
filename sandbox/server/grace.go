// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usualGrace is the default grace period of a Pod in seconds.
const usualGrace = 30

// graceOf returns the grace period of a deletion in seconds: only a Pod on a node has one.
func graceOf(t *table, o *unstructured.Unstructured, asked *int64) int64 {
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	switch {
	case t.name() != schema.GroupResource{Resource: "pods"}, node == "", phase == "Failed", phase == "Succeeded":
		return 0
	case asked != nil:
		return *asked
	}
	if own, found, _ := unstructured.NestedInt64(o.Object, "spec", "terminationGracePeriodSeconds"); found {
		return own
	}
	return usualGrace
}

// left returns the grace period of an object that is being deleted.
func left(o *unstructured.Unstructured) int64 {
	if seconds := o.GetDeletionGracePeriodSeconds(); seconds != nil {
		return *seconds
	}
	return 0
}

// shorten shortens the grace period of an object that is being deleted, after another delete request. Its end moves
// by the difference, but not into the past. It returns nil if the object ends now.
func (s *Server) shorten(t *table, o *unstructured.Unstructured, grace int64) *unstructured.Unstructured {
	before := left(o)
	if grace >= before {
		return o
	}
	next := o.DeepCopy()
	end := o.GetDeletionTimestamp().Add(time.Duration(grace-before) * time.Second)
	if now := time.Now(); end.Before(now) {
		end, grace = now, min(grace, 1)
	}
	metadata := next.Object["metadata"].(map[string]any)
	metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = end.UTC().Format(time.RFC3339), grace
	next = s.commit(t, store.Modified, next)
	if grace > 0 || len(next.GetFinalizers()) > 0 {
		return next
	}
	s.commit(t, store.Deleted, next.DeepCopy())
	return nil
}

// after returns the time after a number of seconds.
func after(seconds int64) string {
	return time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
}
