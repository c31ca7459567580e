// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"fmt"
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

// Mark is the place where an operator remembers what was handled, now and in earlier versions.
type Mark struct {
	// Markers are the prefixes of the field managers of earlier versions; see [Marker].
	Markers []string
	// Annotation is the key of the state annotation, and State returns its value for an object with the earlier mark.
	Annotation string
	State      func(live *unstructured.Unstructured) (string, error)
}

// TakeOver moves the mark of an earlier version to the state annotation, in one write: the target's manager becomes the
// manager of the number, which marks nothing from then on. It reads the object first, because caches do not hold all of
// its managedFields. Wrote is called after the write. The result is nil if the object is gone.
func (m Mark) TakeOver(ctx context.Context, t Target, wrote func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	live, err := t.onLive(ctx, func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if !HasMarker(live, m.Markers) {
			return live, nil
		}
		text, err := m.State(live)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(), "annotations": map[string]any{m.Annotation: text},
			"managedFields": m.without(live, t.Manager),
		}})
		if err != nil {
			return nil, err
		}
		now, err := t.Client.Patch(ctx, live.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: t.Manager})
		if err == nil {
			wrote(now)
		}
		return now, err
	})
	if err != nil {
		return nil, fmt.Errorf("storing in an annotation what status.observedGeneration marks as handled: %w", err)
	}
	return live, nil
}

// without returns the managedFields of an object with the entries of its marks merged into those of a manager.
func (m Mark) without(live *unstructured.Unstructured, manager string) []metav1.ManagedFieldsEntry {
	marks := markersOf(live, m.Markers)
	return merged(live, manager, func(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
		if slices.Contains(marks, e.Manager) {
			e.Manager = manager
		}
		return fieldsOf(*e)
	})
}
