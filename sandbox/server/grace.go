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
	if now := s.clock.Now(); end.Before(now) {
		end, grace = now, min(grace, 1)
	}
	metadata := next.Object["metadata"].(map[string]any)
	metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = stamp(end), grace
	next = s.commit(t, store.Modified, next)
	if grace > 0 || len(next.GetFinalizers()) > 0 {
		return next
	}
	s.commit(t, store.Deleted, next.DeepCopy())
	return nil
}

// after returns the time after a number of seconds.
func (s *Server) after(seconds int64) string {
	return stamp(s.clock.Now().Add(time.Duration(seconds) * time.Second))
}

// now returns the time in the form of metadata.
func (s *Server) now() string { return stamp(s.clock.Now()) }

// stamp returns a time in the form of metadata.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// later runs a function of a controller after the time that one takes to notice a write.
func (s *Server) later(lag time.Duration, do func()) {
	if s.prompt {
		lag = 0
	}
	s.clock.AfterFunc(lag, do)
}
