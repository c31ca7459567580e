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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// bind puts a Pod on a node, as a scheduler asks.
func (s *Server) bind(t *table, r Request) (any, error) {
	binding := &unstructured.Unstructured{Object: r.Body}
	if binding.GetName() != r.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	node, _, _ := unstructured.NestedString(r.Body, "target", "name")
	if err := checkTarget(r.Body, node); err != nil {
		return nil, internalError(err)
	}
	if err := s.validated(t, r, subject{kind: schema.GroupVersionKind{Version: "v1", Kind: "Binding"}, operation: admission.Create, next: binding}); err != nil {
		return nil, err
	}
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	asked := old.DeepCopy()
	asked.SetUID(binding.GetUID())
	if err := s.otherUID(t, asked, old.GetUID()); err != nil {
		return nil, err
	}
	if err := mayBind(old); err != nil {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, r.Name, err)
	}
	next := old.DeepCopy()
	next.SetAnnotations(added(old.GetAnnotations(), binding.GetAnnotations()))
	next.SetLabels(added(old.GetLabels(), binding.GetLabels()))
	if err := unstructured.SetNestedField(next.Object, node, "spec", "nodeName"); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	err := setCondition(next, map[string]any{"type": "PodScheduled", "status": "True", "lastProbeTime": nil, "lastTransitionTime": s.now()})
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	s.commit(t, store.Modified, next)
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}, nil
}

// checkTarget returns what is wrong with the target of a binding.
func checkTarget(binding map[string]any, node string) error {
	var errs field.ErrorList
	path := field.NewPath("target")
	if kind, _, _ := unstructured.NestedString(binding, "target", "kind"); kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(path.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if node == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	return errs.ToAggregate()
}

// mayBind returns why a Pod cannot be bound.
func mayBind(pod *unstructured.Unstructured) error {
	on, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	gates, _, _ := unstructured.NestedSlice(pod.Object, "spec", "schedulingGates")
	switch {
	case pod.GetDeletionTimestamp() != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.GetName())
	case on != "":
		return fmt.Errorf("pod %s is already assigned to node %q", pod.GetName(), on)
	case len(gates) > 0:
		return fmt.Errorf("pod %s has non-empty .spec.schedulingGates", pod.GetName())
	}
	return nil
}

// added returns a map with the entries of another one, too.
func added(to, from map[string]string) map[string]string {
	if len(from) == 0 {
		return to
	}
	out := maps.Clone(to)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, from)
	return out
}

// setCondition sets a condition of a Pod in the place of that of its type, whose time it keeps if the status stays.
func setCondition(pod *unstructured.Unstructured, condition map[string]any) error {
	conditions, _, err := unstructured.NestedSlice(pod.Object, "status", "conditions")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(conditions, func(c any) bool {
		each, _ := c.(map[string]any)
		return each["type"] == condition["type"]
	})
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
