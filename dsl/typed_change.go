// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// take adds to the patch the difference between two states of a typed object.
func (p *Patch) take(o *unstructured.Unstructured, before, after map[string]any) {
	for _, path := range kept {
		was, _ := path.In(before)
		if _, stays := path.In(after); !stays && was != nil {
			p.note(path.set(after, map[string]any{})) // the type covers only a part of the map
		}
	}
	wanted, _ := plain.Merged(o.Object, before, after).(map[string]any)
	change := plain.Difference(o.Object, wanted)
	over := NewPatch()
	if status, changed := change["status"]; changed {
		fields, isMap := status.(map[string]any)
		if !isMap {
			p.note(errors.New("changing status: it is not a map"))
		}
		over.Status = fields
		delete(change, "status")
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if _, changed := change[key]; changed {
			p.note(fmt.Errorf("changing %s: an object keeps it", key))
			delete(change, key)
		}
	}
	if metadata, isMap := change["metadata"].(map[string]any); isMap {
		p.note(meant(o, metadata, "labels", "ownerReferences"))
		if len(metadata) == 0 {
			delete(change, "metadata")
		}
	}
	over.Object = change
	if over.singly(o); over.Status["conditions"] != nil {
		over.Conditions, over.Offered = slices.Clone(p.Conditions), slices.Clone(p.Offered) // these stay, beside the list
	}
	p.Join(over)
}

// kept are maps that are never removed as a whole: a typed object without them removes only the keys that it knows.
var kept = []Path{{"status"}, {"metadata"}, {"metadata", "annotations"}}

// meant removes from a change of metadata the changes that handlers may not make, and returns an error for them.
// The given fields may be changed, and so may annotations that are not bookkeeping.
func meant(o *unstructured.Unstructured, metadata map[string]any, fields ...string) (err error) {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if slices.Contains(fields, key) {
			continue
		}
		switch key {
		case "annotations":
			has := o.GetAnnotations()
			annotations, _ := metadata[key].(map[string]any)
			maps.DeleteFunc(annotations, func(name string, _ any) bool { return bookkeeping.Is(name, has[name]) && !bookkeeping.Deployed(name) })
			if len(annotations) > 0 {
				continue
			}
		case "finalizers":
			err = errors.Join(err, errors.New("changing metadata.finalizers: the operator keeps its own for delete handlers, and Patch.Set sets others"))
		default:
			err = errors.Join(err, fmt.Errorf("changing metadata.%s: it is the API server's; labels, annotations and ownerReferences can be changed", key))
		}
		delete(metadata, key)
	}
	return err
}

// singly replaces a changed list of conditions by single conditions to set, if these have all the changes.
func (p *Patch) singly(o *unstructured.Unstructured) {
	list, changed := p.Status["conditions"].([]any)
	if !changed {
		return
	}
	found, _ := Path{"status", "conditions"}.In(o.Object)
	has, _ := found.([]any)
	before, known := conditionsByType(has)
	after, clear := conditionsByType(list)
	if !known || !clear {
		return
	}
	for kind := range before {
		if after[kind] == nil {
			return
		}
	}
	var set []metav1.Condition
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		condition, changed, isPlain := conditionOf(before[c["type"].(string)], c, o.GetGeneration())
		if !isPlain {
			return
		}
		if changed {
			set = append(set, condition)
		}
	}
	p.Conditions = set
	delete(p.Status, "conditions")
}

// conditionsByType returns the entries of a list by type; ok is false if types are missing or repeated.
func conditionsByType(list []any) (out map[string]map[string]any, ok bool) {
	out = map[string]map[string]any{}
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		kind, is := c["type"].(string)
		if !is || out[kind] != nil {
			return nil, false
		}
		out[kind] = c
	}
	return out, true
}

// conditionOf returns the condition to set for a changed entry, and whether there is one. It is not plain if
// [Patch.SetCondition] cannot make the change. The engine sets the transition time.
func conditionOf(before, after map[string]any, generation int64) (out metav1.Condition, changed, isPlain bool) {
	change := plain.Difference(before, after)
	delete(change, "lastTransitionTime")
	for key, value := range change {
		_, isText := value.(string)
		switch key {
		case "type":
		case "status", "reason", "message":
			if !isText {
				return out, false, false
			}
		case "observedGeneration":
			if value != nil && value != int64(0) && value != generation {
				return out, false, false
			}
		default:
			return out, false, false
		}
	}
	text := func(key string) string { value, _ := after[key].(string); return value }
	out = metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	return out, len(change) > 0, true
}
