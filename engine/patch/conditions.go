// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions returns status.conditions with the wanted ones set, and whether that changes them.
// The list keeps its order and what others wrote; a transition time moves when the condition's
// status changes and only then.
func conditions(status map[string]any, wanted []metav1.Condition, generation int64, now time.Time) ([]any, bool) {
	before, _ := status["conditions"].([]any)
	list := slices.Clone(before)
	for _, w := range wanted {
		at := slices.IndexFunc(list, func(item any) bool {
			c, ok := item.(map[string]any)
			return ok && c["type"] == w.Type
		})
		if at < 0 {
			list = append(list, condition(nil, w, generation, now))
			continue
		}
		list[at] = condition(list[at].(map[string]any), w, generation, now)
	}
	return list, len(wanted) > 0 && !reflect.DeepEqual(before, list)
}

// without returns the conditions but for those of a type.
func without(list []any, kind string) []any {
	return slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && kind != "" && c["type"] == kind
	})
}

func condition(before map[string]any, w metav1.Condition, generation int64, now time.Time) map[string]any {
	after := maps.Clone(before)
	if after == nil {
		after = map[string]any{"type": w.Type}
	}
	if before["status"] != string(w.Status) || before["lastTransitionTime"] == nil {
		after["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
	}
	unchanged := before["status"] == string(w.Status) && before["reason"] == w.Reason && before["message"] == w.Message
	after["status"] = string(w.Status)
	after["reason"] = w.Reason
	after["message"] = w.Message
	_, keeps := before["observedGeneration"]
	if generation > 0 && (keeps || !unchanged) {
		// A schema without this field drops it; asking for it again each time would never end.
		after["observedGeneration"] = generation
	}
	return after
}
