// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// hidden stands for a value of a Secret. A changed one becomes hiddenToo.
const (
	hidden    = "(hidden)"
	hiddenToo = "(hidden, another value)"
)

// comparison collects the fields in which two objects differ.
type comparison struct {
	// prefix begins the keys of the operator's own annotations and labels.
	prefix string
	// status: the status counts.
	status bool
	// secret: the values of data are hidden.
	secret bool

	fields []Field
	// marks: one of the operator's own annotations differs.
	marks bool
}

// compare collects the differences of two objects.
func (c *comparison) compare(before, after map[string]any) {
	for _, key := range keysOf(before, after) {
		switch {
		case key == "apiVersion", key == "kind", key == "status" && !c.status:
		case key == "metadata":
			a, _ := before[key].(map[string]any)
			b, _ := after[key].(map[string]any)
			c.metadata(a, b)
		case c.secret && (key == "data" || key == "stringData"):
			c.hide(key, before[key], after[key])
		default:
			c.value(key, before[key], after[key])
		}
	}
}

// metadata compares the fields of the metadata that an author may set. The owner of a created object is left out: a child
// has one.
func (c *comparison) metadata(before, after map[string]any) {
	for _, key := range []string{"annotations", "finalizers", "labels", "ownerReferences"} {
		a, b := before[key], after[key]
		switch {
		case key == "annotations":
			a, b = c.annotations(a, b)
		case key == "ownerReferences" && before == nil:
			continue
		case key == "ownerReferences":
			a, b = owners(a, b)
		}
		c.value("metadata."+key, a, b)
	}
}

// owners returns owner references as texts, with uids if these alone differ.
func owners(before, after any) (a, b any) {
	if a, b = ownerTexts(before, "name"), ownerTexts(after, "name"); equal(a, b) {
		a, b = ownerTexts(before, "uid"), ownerTexts(after, "uid")
	}
	return a, b
}

func ownerTexts(references any, field string) any {
	var out []any
	list, _ := references.([]any)
	for _, item := range list {
		tree, _ := item.(map[string]any)
		out = append(out, fmt.Sprintf("%v %v", tree["kind"], tree[field]))
	}
	if len(out) == 0 {
		return nil // a nil slice in an interface is not nil
	}
	return out
}

// lastApplied is the annotation in which kubectl keeps an object, and with it the values of a Secret.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// rolled begins the annotations that the controller of Deployments keeps.
const rolled = "deployment.kubernetes.io/"

// annotations returns the annotations that say something to people, and notes a difference in the operator's own.
func (c *comparison) annotations(before, after any) (a, b any) {
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	for _, key := range keysOf(was, is) {
		c.marks = c.marks || strings.HasPrefix(key, c.prefix+"/") && was[key] != is[key]
	}
	unseen := func(key string, _ any) bool {
		return strings.HasPrefix(key, c.prefix+"/") || strings.HasPrefix(key, rolled) || key == lastApplied && c.secret
	}
	was, is = maps.Clone(was), maps.Clone(is)
	maps.DeleteFunc(was, unseen)
	maps.DeleteFunc(is, unseen)
	return orNil(was), orNil(is)
}

func orNil(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// hide compares maps whose values are not shown.
func (c *comparison) hide(path string, before, after any) {
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	for _, key := range keysOf(was, is) {
		a, b := was[key], is[key]
		if reflect.DeepEqual(a, b) {
			continue
		}
		if a != nil {
			a = hidden
		}
		switch {
		case a != nil && b != nil:
			b = hiddenToo
		case b != nil:
			b = hidden
		}
		c.fields = append(c.fields, Field{join(path, key), a, b})
	}
}

// value compares the values at a path.
func (c *comparison) value(path string, before, after any) {
	if equal(before, after) {
		return
	}
	if areTrees(before, after) {
		was, _ := before.(map[string]any)
		is, _ := after.(map[string]any)
		for _, key := range keysOf(was, is) {
			c.value(join(path, key), was[key], is[key])
		}
		return
	}
	a, isList := before.([]any)
	b, isListToo := after.([]any)
	switch {
	case strings.HasSuffix(path, "status.conditions") && (isList || isListToo):
		c.conditions(path, a, b)
	case isList && isListToo || isList && after == nil && hasTrees(a) || isListToo && before == nil && hasTrees(b):
		c.lists(path, a, b)
	default:
		c.fields = append(c.fields, Field{path, before, after})
	}
}

// areTrees reports whether values are compared key by key: both are maps, or one is and the other is absent.
func areTrees(before, after any) bool {
	was, isMap := before.(map[string]any)
	is, isMapToo := after.(map[string]any)
	return isMap && isMapToo || isMap && after == nil && len(was) > 0 || before == nil && isMapToo && len(is) > 0
}

// lists compares lists item by item. Lists of plain values of different lengths are shown as wholes.
func (c *comparison) lists(path string, before, after []any) {
	if len(before) != len(after) && !hasTrees(before) && !hasTrees(after) {
		c.fields = append(c.fields, Field{path, before, after})
		return
	}
	for i := range max(len(before), len(after)) {
		var a, b any
		if i < len(before) {
			a = before[i]
		}
		if i < len(after) {
			b = after[i]
		}
		c.value(fmt.Sprintf("%s[%d]", path, i), a, b)
	}
}

func hasTrees(list []any) bool {
	return slices.ContainsFunc(list, func(item any) bool { _, is := item.(map[string]any); return is })
}

// conditions compares conditions by their type. Their times and observed generations are not shown: these differ each time.
func (c *comparison) conditions(path string, before, after []any) {
	was, is := byType(before), byType(after)
	for _, kind := range keysOf(was, is) {
		c.value(path+"["+kind+"]", was[kind], is[kind])
	}
}

func byType(conditions []any) map[string]any {
	out := map[string]any{}
	for _, item := range conditions {
		tree, _ := item.(map[string]any)
		kind, _ := tree["type"].(string)
		tree = maps.Clone(tree)
		for _, key := range []string{"type", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "observedGeneration"} {
			delete(tree, key)
		}
		out[kind] = tree
	}
	return out
}

// equal compares plain values. An empty map or list is equal to none.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || isEmpty(a) && isEmpty(b)
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// join appends a key to a path. A key with a dot in it is quoted.
func join(path, key string) string {
	if strings.ContainsAny(key, ".[]/ ") {
		return path + "[" + fmt.Sprintf("%q", key) + "]"
	}
	return path + "." + key
}

// keysOf returns the keys of both maps, sorted.
func keysOf(a, b map[string]any) []string {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
