// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// change is a merge patch, valid only for the version that it was made from.
type change struct{ tree map[string]any }

func (c change) join(other change) change { return change{tree: overlay(c.tree, other.tree)} }

// digest identifies the change together with the current values of the changed fields. It ignores the time in a
// condition, which is always that of the attempt.
func (c change) digest(object map[string]any) uint64 {
	sum, err := plain.Hash([]any{timeless(c.tree), timeless(covered(object, c.tree))})
	if err != nil {
		return rand.Uint64() // not JSON: it is sent, and the server reports the fault
	}
	return sum
}

// covered returns the part of an object that a merge patch changes.
func covered(object, patch map[string]any) map[string]any {
	out := map[string]any{}
	for key, wanted := range patch {
		has, found := object[key]
		sub, isMap := wanted.(map[string]any)
		inner, both := has.(map[string]any)
		switch {
		case isMap && both:
			out[key] = covered(inner, sub)
		case found:
			out[key] = has
		}
	}
	return out
}

// timeless returns the tree without the transition times of its conditions.
func timeless(tree map[string]any) map[string]any {
	status, _ := tree["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	if len(list) == 0 {
		return tree
	}
	bare := make([]any, len(list))
	for i, item := range list {
		if c, ok := item.(map[string]any); ok {
			c = maps.Clone(c)
			delete(c, "lastTransitionTime")
			item = c
		}
		bare[i] = item
	}
	return overlay(tree, map[string]any{"status": map[string]any{"conditions": bare}})
}

// objectChange returns the changes of p and m outside status that o does not have yet, with the annotations of
// Along.
func (t Target) objectChange(o *unstructured.Unstructured, p *dsl.Patch, m Marks) change {
	notes := t.notes(o, p, m)
	for key, was := range m.RemoveAnnotations {
		if now, found := o.GetAnnotations()[key]; found && now == was {
			notes = overlay(notes, map[string]any{key: nil})
		}
	}
	c := wantedChange(o, p, m, notes)
	if len(m.Annotations) == 0 || len(c.tree) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(m.Annotations)), func(n Note) bool { return n.Alone }) {
		return c
	}
	if notes == nil {
		notes = map[string]any{}
	}
	for key, note := range m.Annotations {
		switch {
		case note.Text != "":
			notes[key] = note.Text
		case o.GetAnnotations()[key] == note.Was:
			notes[key] = nil
		}
	}
	return wantedChange(o, p, m, notes)
}

// notes returns the desired state of the engine's own annotations. A handler that removes all annotations does not
// remove the engine's, because these hold what it knows of the object. Nil means none.
func (t Target) notes(o *unstructured.Unstructured, p *dsl.Patch, m Marks) map[string]any {
	if m.Annotation == "" && !removesConditions(p) {
		return nil
	}
	out := map[string]any{}
	if t.Prefix != "" && removesConditions(p) {
		for key, value := range o.GetAnnotations() {
			_, asked := dsl.Path{"metadata", "annotations", key}.In(p.Object)
			if strings.HasPrefix(key, t.Prefix+"/") && !asked {
				out[key] = value
			}
		}
	}
	if m.Annotation == "" {
		return out
	}
	out[m.Annotation] = nil
	if m.State != "" {
		out[m.Annotation] = m.State
	}
	return out
}

// removesConditions reports whether p may remove annotations without naming them.
func removesConditions(p *dsl.Patch) bool {
	metadata, named := p.Object["metadata"]
	all, _ := metadata.(map[string]any)
	annotations, given := all["annotations"]
	return named && metadata == nil || given && annotations == nil || len(p.Replaced) > 0
}

// wantedChange returns the changes of p and m outside status that o does not have yet, with the engine's own
// annotations.
func wantedChange(o *unstructured.Unstructured, p *dsl.Patch, m Marks, notes map[string]any) change {
	c := change{tree: lacking(o.Object, plain.ValidMap(p.Object), p.Replaced)}
	if len(notes) > 0 {
		wanted := dsl.NewPatch()
		wanted.Join(p)
		wanted.Object = plain.ValidMap(wanted.Object)
		wanted.Join(&dsl.Patch{Object: map[string]any{"metadata": map[string]any{"annotations": notes}}})
		c.tree = lacking(o.Object, wanted.Object, wanted.Replaced)
	}
	list, changed := m.finalizers(o, c)
	if !changed {
		return c
	}
	return c.join(change{tree: map[string]any{"metadata": map[string]any{"finalizers": list}}})
}

// statusChange returns the changes of p and m in status that o does not have yet.
func (t Target) statusChange(o *unstructured.Unstructured, p *dsl.Patch, m Marks) change {
	status, _ := o.Object["status"].(map[string]any)
	fields, wanted := p.Status, p.Conditions
	set, removed := m.conditions()
	if wanted = slices.Concat(wanted, set); len(wanted)+len(p.Retired)+len(removed) > 0 {
		fields = t.conditioned(o, fields, wanted, p, removed)
	}
	c := change{tree: lacking(status, plain.ValidMap(fields), p.ReplacedStatus)}
	c.tree = m.observed(status, c.tree)
	if len(c.tree) > 0 {
		c.tree = map[string]any{"status": c.tree}
	}
	return c
}

// conditions returns the engine's own conditions to set, and the types of those to remove.
func (m Marks) conditions() (set []metav1.Condition, removed []string) {
	removed = slices.Clone(m.RemoveConditions)
	set = append(set, m.Conditions...)
	for _, c := range m.Ready {
		if c.Status == "" {
			removed = append(removed, c.Type)
		} else {
			set = append(set, c)
		}
	}
	return set, removed
}

// observed adds status.observedGeneration to a change of the status. A handler cannot set another value.
func (m Marks) observed(status, change map[string]any) map[string]any {
	if m.Observed == 0 {
		return change
	}
	delete(change, "observedGeneration")
	if len(change) == 0 && !m.ObservedAlone {
		return change
	}
	return overlay(change, minimal(status, map[string]any{"observedGeneration": m.Observed}))
}

// conditioned returns fields of the status with the wanted conditions added, and others removed.
func (t Target) conditioned(o *unstructured.Unstructured, fields map[string]any, wanted []metav1.Condition, p *dsl.Patch, mended []string) map[string]any {
	status, _ := o.Object["status"].(map[string]any)
	list, changed := conditions(remaining(status, p, wanted), wanted, t.Generation, t.Now)
	stays := func(kind string) bool {
		wants := func(c metav1.Condition) bool { return c.Type == kind }
		return slices.ContainsFunc(wanted, wants) || !hasSet(o, append([]string{t.Manager}, t.Earlier...), kind)
	}
	gone := append(slices.DeleteFunc(slices.Clone(p.Retired), stays), mended...)
	if kept := without(list, gone); len(kept) < len(list) {
		list, changed = kept, true
	}
	if _, set := fields["conditions"]; changed || set && len(wanted) > 0 {
		return overlay(fields, map[string]any{"conditions": list})
	}
	return fields
}

// remaining returns the status in which to set conditions. If handlers set or remove the conditions as a whole, it
// has what they leave. Conditions that are removed and set again keep their transition times.
func remaining(status map[string]any, p *dsl.Patch, wanted []metav1.Condition) map[string]any {
	given, set := p.Status["conditions"]
	if !set {
		return status
	}
	if given == nil {
		list, _ := status["conditions"].([]any)
		given = slices.DeleteFunc(slices.Clone(list), func(item any) bool {
			c, is := item.(map[string]any)
			return !is || !slices.ContainsFunc(wanted, func(w metav1.Condition) bool { return c["type"] == w.Type })
		})
	}
	return map[string]any{"conditions": given}
}

// lacking returns the part of a merge patch that changes base. At some paths, the patch's maps replace those of
// base.
func lacking(base, patch map[string]any, replaced []dsl.Path) map[string]any {
	for _, path := range replaced {
		has, _ := path.In(base)
		wanted, _ := path.In(patch)
		below, isMap := has.(map[string]any)
		above, both := wanted.(map[string]any)
		if !isMap || !both {
			continue // then it replaces that anyway
		}
		removal := others(below, above)
		for _, key := range slices.Backward(path) {
			removal = map[string]any{key: removal}
		}
		patch = overlay(patch, removal)
	}
	return minimal(base, patch)
}

// others returns the merge patch that removes from a map the keys that its replacement lacks.
func others(has, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range has {
		above, isMap := wanted[key].(map[string]any)
		below, both := value.(map[string]any)
		switch {
		case wanted[key] == nil || isMap && plain.Removes(above):
			out[key] = nil
		case isMap && both:
			out[key] = others(below, above)
		}
	}
	return out
}

// minimal returns the part of a merge patch that changes base.
func minimal(base, patch map[string]any) map[string]any {
	out := map[string]any{}
	for key, wanted := range patch {
		has, found := base[key]
		sub, isMap := wanted.(map[string]any)
		hasMap, both := has.(map[string]any)
		switch {
		case wanted == nil:
			if found && has != nil {
				out[key] = nil
			}
		case isMap && both:
			if inner := minimal(hasMap, sub); len(inner) > 0 {
				out[key] = inner
			}
		case isMap:
			// Removals inside a missing map would create it, empty.
			if inner := minimal(nil, sub); len(inner) > 0 || len(sub) == 0 {
				out[key] = inner
			}
		case !same(has, wanted):
			out[key] = wanted
		}
	}
	return out
}

// same compares JSON values; numbers by value, because 1 and 1.0 are the same for the server.
func same(a, b any) bool {
	x, aFloat := a.(float64)
	y, bFloat := b.(float64)
	switch {
	case aFloat && !bFloat:
		return whole(b, x)
	case bFloat && !aFloat:
		return whole(a, y)
	}
	switch a.(type) {
	case nil, bool, int64, string:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// whole reports whether a value is an integer that equals a float; large integers may have no exact float.
func whole(v any, f float64) bool {
	n, is := v.(int64)
	return is && f == math.Trunc(f) && math.Abs(f) < 1<<63 && int64(f) == n
}

// overlay merges over into a copy of base. Nil stays nil, so it joins two merge patches.
func overlay(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		below, isMap := out[key].(map[string]any)
		above, both := value.(map[string]any)
		if isMap && both {
			value = overlay(below, above)
		}
		out[key] = value
	}
	return out
}

// dropped returns the leaves of a merge patch that are missing in the resulting object. It ignores metadata, which
// the server changes itself.
func dropped(path dsl.Path, patch, object map[string]any) []dsl.Path {
	var out []dsl.Path
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		if len(path) == 0 && key == "metadata" || patch[key] == nil {
			continue
		}
		at := append(slices.Clone(path), key)
		has, found := object[key]
		if !found {
			out = append(out, at)
			continue
		}
		sub, isMap := patch[key].(map[string]any)
		inner, both := has.(map[string]any)
		if isMap && both {
			out = append(out, dropped(at, sub, inner)...)
		}
	}
	return out
}
