// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// conditions returns status.conditions with the wanted ones set, and whether that changes them. The list keeps its
// order and the conditions of others; a transition time changes only when the condition's status changes. If the
// schema allows invalid lists of conditions, it repairs them: it removes entries without a type, and further
// entries of a wanted type, which readers could mistake for it.
func conditions(status map[string]any, wanted []metav1.Condition, generation int64, now time.Time) ([]any, bool) {
	before, isList := status["conditions"].([]any)
	list := slices.DeleteFunc(slices.Clone(before), func(item any) bool { return typeOf(item) == "" })
	for _, w := range wanted {
		at := slices.IndexFunc(list, func(item any) bool { return typeOf(item) == w.Type })
		if at < 0 {
			list = append(list, condition(nil, w, generation, now))
			continue
		}
		list[at] = condition(list[at].(map[string]any), w, generation, now)
		rest := slices.DeleteFunc(slices.Clone(list[at+1:]), func(item any) bool { return typeOf(item) == w.Type })
		list = append(list[:at+1], rest...)
	}
	return list, len(wanted) > 0 && (!isList || !reflect.DeepEqual(before, list))
}

// typeOf returns the type of a condition; empty if the value is not one.
func typeOf(item any) string {
	c, _ := item.(map[string]any)
	kind, _ := c["type"].(string)
	return kind
}

// isPast reports whether a value is a transition time in the past.
func isPast(value any, now time.Time) bool {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && at.Sub(now) <= plain.ClockSkew
}

// without returns the conditions without some types.
func without(list []any, kinds []string) []any {
	return slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		kind := typeOf(item)
		return kind != "" && slices.Contains(kinds, kind)
	})
}

// hasSet reports whether one of these field managers has set a condition.
func hasSet(o *unstructured.Unstructured, managers []string, kind string) bool {
	return slices.Contains(ConditionsOf(o.GetManagedFields(), managers), kind)
}

// ConditionsOf returns the types of conditions that one of these field managers has set, sorted, by managedFields.
// It finds none if the schema's conditions are not a list with keys.
func ConditionsOf(entries []metav1.ManagedFieldsEntry, managers []string) (out []string) {
	for _, entry := range entries {
		if !isOf(entry.Manager, managers) {
			continue
		}
		for field := range conditionFields(entry) {
			var key struct {
				Type string `json:"type"`
			}
			if text, is := strings.CutPrefix(field, "k:"); is && json.Unmarshal([]byte(text), &key) == nil && key.Type != "" {
				out = append(out, key.Type)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Setter returns a field manager, other than these, that has set a condition, by managedFields; empty if there is
// none. kubectl does not count. If conditions are not a list with keys, it is the manager of the whole list.
func Setter(o *unstructured.Unstructured, managers []string, kind string) string {
	set, whole := setters(o, kind)
	for _, m := range append(set, whole...) {
		if !isOf(m, managers) && !strings.HasPrefix(m, "kubectl") {
			return m
		}
	}
	return ""
}

// isOf reports whether a field manager is one of some, or has the name of a mark of one.
func isOf(manager string, some []string) bool {
	return slices.ContainsFunc(some, func(m string) bool {
		return m != "" && (manager == m || strings.HasPrefix(manager, Marker(m)))
	})
}

// setters returns the field managers of a condition, and those of the conditions as a whole.
func setters(o *unstructured.Unstructured, kind string) (set, whole []string) {
	for _, entry := range o.GetManagedFields() {
		list := conditionFields(entry)
		if _, has := list[fmt.Sprintf(`k:{"type":%q}`, kind)]; has {
			set = append(set, entry.Manager)
		} else if list != nil && len(list) == 0 {
			whole = append(whole, entry.Manager)
		}
	}
	return set, whole
}

// conditionFields returns the fields of status.conditions in an entry, or nil.
func conditionFields(entry metav1.ManagedFieldsEntry) map[string]any {
	var fields struct {
		Status struct {
			Conditions map[string]any `json:"f:conditions"`
		} `json:"f:status"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return fields.Status.Conditions
}

func condition(before map[string]any, w metav1.Condition, generation int64, now time.Time) map[string]any {
	after := maps.Clone(before)
	if after == nil {
		after = map[string]any{"type": w.Type}
	}
	w.Reason, w.Message = plain.ValidText(w.Reason), plain.ValidText(w.Message)
	if before["status"] != string(w.Status) || !isPast(before["lastTransitionTime"], now) {
		after["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
	}
	unchanged := before["status"] == string(w.Status) && before["reason"] == w.Reason && before["message"] == w.Message
	after["status"] = string(w.Status)
	after["reason"] = w.Reason
	after["message"] = w.Message
	_, keeps := before["observedGeneration"]
	if generation > 0 && (keeps || !unchanged) {
		// A schema without this field drops it; setting it again each time would never end.
		after["observedGeneration"] = generation
	}
	return after
}
