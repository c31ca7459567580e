// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// binds reports whether a request puts a Pod on a node.
func (r Request) binds() bool {
	return r.Subresource == "binding" && r.Verb == "create" && r.Resource.GroupResource() == schema.GroupResource{Resource: "pods"}
}

// bind puts a Pod on a node, as a scheduler asks.
func (s *Server) bind(t *table, r Request) (any, error) {
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	node, _, _ := unstructured.NestedString(r.Body, "target", "name")
	uid, _, _ := unstructured.NestedString(r.Body, "metadata", "uid")
	refused := func(why string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, r.Name, fmt.Errorf("%s", why))
	}
	on, _, _ := unstructured.NestedString(old.Object, "spec", "nodeName")
	switch {
	case node == "":
		return nil, apierrors.NewBadRequest("target.name is required")
	case uid != "" && uid != string(old.GetUID()):
		return nil, refused(fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old.GetUID()))
	case old.GetDeletionTimestamp() != nil:
		return nil, refused(fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", r.Name))
	case on != "":
		return nil, refused(fmt.Sprintf("pod %s is already assigned to node %q", r.Name, on))
	}
	next := old.DeepCopy()
	if err := unstructured.SetNestedField(next.Object, node, "spec", "nodeName"); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	err := setCondition(next, map[string]any{"type": "PodScheduled", "status": "True", "lastProbeTime": nil})
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	s.commit(t, store.Modified, next)
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}, nil
}

// setCondition sets a condition of a Pod in the place of that of its type, and the time if its status changes.
func setCondition(pod *unstructured.Unstructured, condition map[string]any) error {
	conditions, _, err := unstructured.NestedSlice(pod.Object, "status", "conditions")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(conditions, func(c any) bool {
		each, _ := c.(map[string]any)
		return each["type"] == condition["type"]
	})
	condition["lastTransitionTime"] = now()
	if i < 0 {
		conditions = append(conditions, condition)
	} else {
		if old, _ := conditions[i].(map[string]any); old["status"] == condition["status"] {
			condition["lastTransitionTime"] = old["lastTransitionTime"]
		}
		conditions[i] = condition
	}
	status, _ := pod.Object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["conditions"] = conditions
	pod.Object["status"] = status
	return nil
}
