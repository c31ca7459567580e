// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Write is one write of a child.
type Write struct {
	Desired, Before, After *unstructured.Unstructured
	// Own are the keys of the operator's labels and annotations.
	Own []string
	// Manager is the operator's own field manager.
	Manager string
	// Same: the desired template is the one recorded in the child, so only values of a Secret may differ.
	Same bool
}

// Updated returns the paths that the write has changed because the template has changed, without those in theirs.
// Server-side apply returns the resulting child, so removed fields of the template are found, too.
func (w Write) Updated(theirs Drift) []string {
	c := comparison{Write: w, knowledge: knowing(w.Desired.GroupVersionKind().GroupKind()), theirs: theirs}
	for _, key := range keysOf(w.Before.Object, w.After.Object) {
		switch key {
		case "status", "apiVersion", "kind":
		case "metadata":
			for _, section := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
				want, _ := w.Desired.Object[key].(map[string]any)
				before, _ := w.Before.Object[key].(map[string]any)
				after, _ := w.After.Object[key].(map[string]any)
				c.value(dsl.Path{key, section}, want[section], before[section], after[section])
			}
		default:
			c.value(dsl.Path{key}, w.Desired.Object[key], w.Before.Object[key], w.After.Object[key])
		}
	}
	return c.found
}

// comparison compares a child before and after a write.
type comparison struct {
	Write
	knowledge
	theirs Drift
	found  []string
}

func (c *comparison) value(at dsl.Path, want, before, after any) {
	was, wasMap := before.(map[string]any)
	is, isMap := after.(map[string]any)
	section := at[0] == "metadata" && len(at) == 2 // labels are compared one by one, even if there were none
	switch {
	case same(before, after):
		return
	case wasMap && isMap, section && (wasMap || isMap):
		c.members(at, want, was, is)
		return
	}
	if foreign := want == nil && after != nil && c.others(at); !foreign && !c.excused(at, want == nil || c.covers(at[len(at)-1], want, before, false)) {
		c.found = append(c.found, at.String())
	}
}

func (c *comparison) members(at dsl.Path, want any, before, after map[string]any) {
	wanted, _ := want.(map[string]any)
	for _, key := range keysOf(before, after) {
		if at[0] == "metadata" && len(at) == 2 && slices.Contains(c.Own, key) {
			continue
		}
		c.value(append(slices.Clip(at), key), wanted[key], before[key], after[key])
	}
}

// excused reports whether a path differs because of changes by others. AsWanted: the template does not have the
// path.
func (c *comparison) excused(at dsl.Path, asWanted bool) bool {
	path := at.String()
	if asWanted && (c.Same || slices.ContainsFunc(c.theirs.Added, func(added string) bool { return inside(added, path) || inside(path, added) })) {
		return true
	}
	return slices.ContainsFunc(c.theirs.Fields, func(field string) bool { return inside(path, field) })
}

// inside reports whether a path is another one, or below it.
func inside(path, of string) bool {
	rest, below := strings.CutPrefix(path, of)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// others reports whether somebody else manages a path: it was changed after the cache got the child.
func (c *comparison) others(at dsl.Path) bool {
	q := Question{Desired: c.After}
	return q.has(c.After.GetManagedFields(), at, false, func(manager string) bool { return manager != c.Manager })
}

// same compares values of different JSON decoders.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, is := b.(map[string]any)
		return is && maps.EqualFunc(x, y, same)
	case []any:
		y, is := b.([]any)
		return is && slices.EqualFunc(x, y, same)
	}
	return sameScalar(a, b)
}

func keysOf(a, b map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
