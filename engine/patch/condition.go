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

// conditions returns status.conditions with the wanted ones set, and whether that changes them.
// The list keeps its order and what others wrote; a transition time moves when the condition's
// status changes and only then. Where the schema lets anybody write what is no list of conditions, that is repaired:
// entries without a type go, and so do further ones of a wanted type, which readers would take for it.
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

// typeOf returns the type of a condition, empty for what is no condition.
func typeOf(item any) string {
	c, _ := item.(map[string]any)
	kind, _ := c["type"].(string)
	return kind
}

// isPast reports whether a value is the time of a transition that was.
func isPast(value any, now time.Time) bool {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && at.Sub(now) <= plain.ClockSkew
}

// without returns the conditions but for those of some types.
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

// ConditionsOf returns the types of the conditions that one of these field managers has set, sorted, by an object's managedFields.
// These do not say it where conditions are not a list of entries with keys.
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

// Setter returns a field manager that has set a condition and is none of these, by managedFields; empty where there is none. What
// a person does with kubectl does not count. Where conditions are not a list of entries with keys, it is who has set the list.
func Setter(o *unstructured.Unstructured, managers []string, kind string) string {
	set, whole := setters(o, kind)
	for _, m := range append(set, whole...) {
		if !isOf(m, managers) && !strings.HasPrefix(m, "kubectl") {
			return m
		}
	}
	return ""
}

// isOf reports whether a field manager is one of some, or writes the mark of one.
func isOf(manager string, some []string) bool {
	return slices.ContainsFunc(some, func(m string) bool {
		return m != "" && (manager == m || strings.HasPrefix(manager+"/", Marker(m)))
	})
}

// setters are the field managers that have set a condition, and those that have set all conditions as a whole.
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

// conditionFields are the fields of status.conditions that an entry has; nil where it has none of it.
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
		// A schema without this field drops it; asking for it again each time would never end.
		after["observedGeneration"] = generation
	}
	return after
}
