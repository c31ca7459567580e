// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// changes says what is different in two states of an object, one text for each field: finalizers, owners and labels,
// the other fields by name, and annotations, whose values are often those of programs. Values of Secrets are not shown.
func changes(before, after map[string]any) []string {
	a, b := &unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}
	c := &comparison{secret: b.GetKind() == "Secret"}
	c.list("finalizer", a.GetFinalizers(), b.GetFinalizers())
	c.list("owner", ownersOf(a), ownersOf(b))
	c.texts("label", a.GetLabels(), b.GetLabels(), true)
	for _, key := range keys(before, after) {
		switch key {
		case "apiVersion", "kind", "metadata":
		default:
			c.value(key, before[key], after[key])
		}
	}
	c.texts("annotation", a.GetAnnotations(), b.GetAnnotations(), false)
	return c.out
}

func ownersOf(o *unstructured.Unstructured) (out []string) {
	for _, ref := range o.GetOwnerReferences() {
		out = append(out, ref.Kind+" "+ref.Name)
	}
	return out
}

// keys returns the keys of both maps, in order.
func keys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// comparison collects what differs.
type comparison struct {
	secret bool
	out    []string
}

func (c *comparison) add(format string, args ...any) {
	c.out = append(c.out, fmt.Sprintf(format, args...))
}

// list compares lists of words.
func (c *comparison) list(noun string, before, after []string) {
	for _, word := range after {
		if !slices.Contains(before, word) {
			c.add("+%s %s", noun, word)
		}
	}
	for _, word := range before {
		if !slices.Contains(after, word) {
			c.add("-%s %s", noun, word)
		}
	}
}

// texts compares labels or annotations.
func (c *comparison) texts(noun string, before, after map[string]string, values bool) {
	for _, key := range keys(before, after) {
		was, had := before[key]
		is, has := after[key]
		switch {
		case had == has && was == is:
		case !has:
			c.add("-%s %s", noun, key)
		case values:
			c.add("%s %s=%s", noun, key, is)
		default:
			c.add("%s %s", noun, key)
		}
	}
}

// value compares fields at a path.
func (c *comparison) value(path string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	was, nested := before.(map[string]any)
	is, still := after.(map[string]any)
	switch {
	case nested && still, before == nil && still && len(is) > 0, after == nil && nested && len(was) > 0:
		for _, key := range keys(was, is) {
			c.value(path+"."+key, was[key], is[key])
		}
	case path == "status.conditions":
		c.conditions(before, after)
	case pairs(before, after):
		for i, item := range after.([]any) {
			c.value(fmt.Sprintf("%s[%d]", path, i), before.([]any)[i], item)
		}
	case after == nil:
		c.add("-%s", path)
	case before == nil:
		c.add("%s%s", path, c.shown("=", after))
	default:
		c.add("%s%s%s", path, c.shown(" ", before), c.shown(" → ", after))
	}
}

// pairs reports whether two values are lists of objects of the same length.
func pairs(before, after any) bool {
	a, is := before.([]any)
	b, are := after.([]any)
	if !is || !are || len(a) != len(b) {
		return false
	}
	return !slices.ContainsFunc(append(slices.Clone(a), b...), func(item any) bool {
		_, object := item.(map[string]any)
		return !object
	})
}

// conditions compares conditions by their types.
func (c *comparison) conditions(before, after any) {
	was, is := byType(before), byType(after)
	for _, kind := range keys(was, is) {
		old, now := was[kind], is[kind]
		switch {
		case now == nil:
			c.add("-%s", kind)
		case old == nil || old["status"] != now["status"] || old["reason"] != now["reason"] || old["message"] != now["message"]:
			text := fmt.Sprintf("%s=%v", kind, now["status"])
			if reason, _ := now["reason"].(string); reason != "" {
				text += " (" + reason + ")"
			}
			c.add("%s", text)
		}
	}
}

func byType(list any) map[string]map[string]any {
	out := map[string]map[string]any{}
	items, _ := list.([]any)
	for _, item := range items {
		if condition, is := item.(map[string]any); is {
			out[fmt.Sprint(condition["type"])] = condition
		}
	}
	return out
}

// short is the longest value that a line shows, in bytes.
const short = 40

// shown returns a value after a separator; nothing if it is long, or a Secret's.
func (c *comparison) shown(separator string, value any) string {
	data, err := json.Marshal(value)
	if text, is := value.(string); is {
		data = []byte(text)
	}
	if err != nil || c.secret || len(data) > short || len(data) == 0 {
		return ""
	}
	return separator + strings.ReplaceAll(string(data), "\n", " ")
}
