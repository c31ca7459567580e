// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// marks are an operator's marks on an object.
type marks struct {
	finalizers, annotations, labels []string
	// conditions are the types of the conditions that the operator has set, as managedFields say.
	conditions []string
	// child: the operator has applied the object.
	child bool
}

// empty reports whether the object has no marks.
func (m marks) empty() bool {
	return len(m.finalizers)+len(m.annotations)+len(m.labels)+len(m.conditions) == 0
}

// marksOf returns the marks of an object under all names of the operator.
func (c *Cleaner) marksOf(o metav1.Object) marks {
	ours := func(key string) bool {
		for _, op := range c.names {
			if strings.HasPrefix(key, op.Prefix()+"/") {
				return true
			}
		}
		return false
	}
	pick := func(keys []string) []string {
		return slices.DeleteFunc(keys, func(key string) bool { return !ours(key) })
	}
	m := marks{
		finalizers:  pick(slices.Clone(o.GetFinalizers())),
		annotations: pick(slices.Sorted(maps.Keys(o.GetAnnotations()))),
		labels:      pick(slices.Sorted(maps.Keys(o.GetLabels()))),
		conditions:  patch.ConditionsOf(o.GetManagedFields(), c.managers()),
	}
	applied := slices.ContainsFunc(c.names, func(op *dsl.Operator) bool { return slices.Contains(m.annotations, op.AppliedAnnotation()) })
	m.child = applied && slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply && slices.Contains(c.managers(), e.Manager)
	})
	return m
}

// without returns the merge patch that removes the marks from an object's metadata, for the version that was read.
func (m marks) without(o metav1.Object) map[string]any {
	metadata := map[string]any{"resourceVersion": o.GetResourceVersion(), "uid": o.GetUID()}
	if len(m.finalizers) > 0 {
		rest := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return slices.Contains(m.finalizers, f) })
		metadata["finalizers"] = rest
	}
	none := func(keys []string) map[string]any {
		out := map[string]any{}
		for _, key := range keys {
			out[key] = nil
		}
		return out
	}
	if len(m.annotations) > 0 {
		metadata["annotations"] = none(m.annotations)
	}
	if len(m.labels) > 0 {
		metadata["labels"] = none(m.labels)
	}
	return map[string]any{"metadata": metadata}
}
