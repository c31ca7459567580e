// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cleanup is the finalizer that a CRD gets when it is deleted: its objects go first.
const cleanup = "customresourcecleanup.apiextensions.k8s.io"

// abolish begins the deletion of a CRD as a real server does, and returns the CRD as the answer has it. If it has no
// objects, it is gone at once.
func (s *Server) abolish(t *table, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	marked := o.DeepCopy()
	marked.Object["metadata"].(map[string]any)["deletionTimestamp"] = s.now()
	if finalizers := o.GetFinalizers(); !slices.Contains(finalizers, cleanup) {
		marked.SetFinalizers(append(finalizers, cleanup))
	}
	ending(marked, "InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon", s.now())
	marked = s.commit(t, store.Modified, marked)
	if s.dry {
		return marked, nil
	}
	if !s.contains(t, o) {
		s.byItself(func() { s.finish(content{t, marked}) })
		s.unserve()
		return marked, nil
	}
	s.byItself(func() {
		next := marked.DeepCopy()
		ending(next, "InstanceDeletionInProgress", "CustomResource deletion is in progress", s.now())
		s.commit(t, store.Modified, s.statusBy(apiServer, t, marked, next))
	})
	return marked, s.empty(t, marked)
}

// finish ends a CRD or a namespace that is being deleted and has become empty, unless others have finalizers on it.
func (s *Server) finish(c content) {
	next := c.object.DeepCopy()
	if c.table.name() == namespaces() {
		holdBy(next, slices.DeleteFunc(heldBy(next), func(f string) bool { return f == string(corev1.FinalizerKubernetes) }))
	} else {
		next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return f == cleanup }))
	}
	if !c.table.ends(next) {
		s.commit(c.table, store.Modified, next)
		return
	}
	s.commit(c.table, store.Deleted, c.object.DeepCopy())
}

// ending sets the condition of a CRD that is being deleted.
func ending(crd *unstructured.Unstructured, reason, message, now string) {
	status, _ := crd.Object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	conditions, _ := status["conditions"].([]any)
	conditions = slices.DeleteFunc(slices.Clone(conditions), func(each any) bool { return each.(map[string]any)["type"] == "Terminating" })
	status["conditions"] = append(conditions, map[string]any{
		"type": "Terminating", "status": "True", "reason": reason, "message": message, "lastTransitionTime": now,
	})
	crd.Object["status"] = status
}
