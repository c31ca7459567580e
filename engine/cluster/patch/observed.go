// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// longUID is how much of an object's UID a field manager's name has, because the server limits its length. UIDs of
// Kubernetes are shorter.
const longUID = 40

// Marker is the prefix of the field managers with which earlier versions of an operator have marked objects as handled,
// in status.observedGeneration. The rest of the name is the object's UID. So neither a number of somebody else nor a
// restored copy of the object counts as a mark.
func Marker(manager string) string { return manager + "/observed/" }

// HasMarker reports whether an object has a mark of an earlier version, by managedFields. Markers are from [Marker].
func HasMarker(o *unstructured.Unstructured, markers []string) bool {
	field, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "managedFields")
	entries, _ := field.([]any)
	if len(entries) == 0 {
		return false
	}
	managers := markersOf(o, markers)
	return slices.ContainsFunc(entries, func(item any) bool {
		e, _ := item.(map[string]any)
		manager, _ := e["manager"].(string)
		subresource, _ := e["subresource"].(string)
		fields, _ := e["fieldsV1"].(map[string]any)
		_, found := dsl.Path{"f:status", "f:observedGeneration"}.In(fields)
		return found && subresource == "status" && slices.Contains(managers, manager)
	})
}

// markersOf returns the field managers that write the mark of one object.
func markersOf(o *unstructured.Unstructured, markers []string) (out []string) {
	uid := string(o.GetUID())
	for _, marker := range markers {
		out = append(out, marker+uid[:min(len(uid), longUID)])
	}
	return out
}

// TakeOver moves the mark of an earlier version on a live object to a state annotation with this text, in one write: the
// target's manager becomes the manager of the number, which marks nothing from then on. Markers are from [Marker].
func TakeOver(ctx context.Context, t Target, markers []string, annotation, text string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": string(t.Object.GetUID()), "resourceVersion": t.Object.GetResourceVersion(), "annotations": map[string]any{annotation: text},
		"managedFields": withoutMarks(t.Object, markers, t.Manager),
	}})
	if err != nil {
		return nil, err
	}
	return t.Client.Patch(ctx, t.Object.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: t.Manager})
}

// withoutMarks returns the managedFields of an object with the entries of its marks merged into those of a manager.
func withoutMarks(o *unstructured.Unstructured, markers []string, manager string) []metav1.ManagedFieldsEntry {
	marks := markersOf(o, markers)
	return merged(o, manager, func(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
		if slices.Contains(marks, e.Manager) {
			e.Manager = manager
		}
		return fieldsOf(*e)
	})
}
