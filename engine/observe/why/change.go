// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

const (
	// valueMost bounds a shown value, in bytes. contextMost bounds its part before the difference. changesMost bounds
	// the number of fields.
	valueMost, contextMost, changesMost = 60, 20, 20
)

// Changes returns the fields in which two versions of an object differ, with their values, sorted. Wanted selects
// fields; nil selects all. Bookkeeping fields are left out. Hidden leaves out the values, as for a Secret.
func Changes(before, after map[string]any, hidden bool, wanted func(dsl.Path) bool) (out []Change) {
	var walk func(at dsl.Path, patch map[string]any)
	walk = func(at dsl.Path, patch map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(patch)) {
			path := append(slices.Clone(at), key)
			from, was := path.In(before)
			if below := within(path, from, patch[key]); below != nil {
				walk(path, below)
				continue
			}
			if kept(path) || wanted != nil && !wanted(path) {
				continue
			}
			change := Change{Path: path.String()}
			if to, is := path.In(after); is && !hidden {
				change.To = asJSON(to)
			}
			if was && !hidden {
				change.From = asJSON(from)
			}
			out = append(out, change.cut())
		}
	}
	walk(nil, plain.Difference(before, after))
	return out[:min(len(out), changesMost)]
}

// within returns the patch of the fields below a path; nil if the value counts as one. Labels and annotations always
// count singly.
func within(path dsl.Path, from, patch any) map[string]any {
	was, isMap := from.(map[string]any)
	below, changes := patch.(map[string]any)
	notes := len(path) == 2 && path[0] == "metadata"
	switch {
	case changes && (isMap || notes && from == nil):
		return below
	case isMap && notes && patch == nil:
		gone := make(map[string]any, len(was))
		for key := range was {
			gone[key] = nil
		}
		return gone
	}
	return nil
}

// kept reports whether a field is bookkeeping, which changes with every write, or is an operator's own.
func kept(p dsl.Path) bool {
	if p[0] != "metadata" || len(p) < 2 {
		return false
	}
	switch p[1] {
	case "resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink":
		return true
	case "annotations":
		return len(p) > 2 && bookkeeping.MayBe(p[2])
	case "labels":
		return len(p) > 2 && bookkeeping.MayBeLabel(p[2])
	}
	return false
}

// asJSON returns a value as JSON.
func asJSON(value any) string {
	data, err := plain.AppendJSON(nil, value)
	if err != nil {
		return "?"
	}
	return strings.ToValidUTF8(string(data), "?")
}

// cut shortens both values. If their difference would be cut off, it drops most of their common beginning.
func (c Change) cut() Change {
	same := 0
	for same < min(len(c.From), len(c.To)) && c.From[same] == c.To[same] {
		same++
	}
	if from := same - contextMost; from > 0 && same >= valueMost-len("…")-contextMost && max(len(c.From), len(c.To)) > valueMost {
		c.From, c.To = "…"+strings.ToValidUTF8(c.From[from:], ""), "…"+strings.ToValidUTF8(c.To[from:], "")
	}
	c.From, c.To = plain.Short(c.From, valueMost), plain.Short(c.To, valueMost)
	return c
}

// Looks reports whether a view looks at a field.
func Looks(v dsl.View, p dsl.Path) bool {
	if slices.ContainsFunc(v.Ignored, func(ignored dsl.Path) bool { return ignored.Leads(p) }) {
		return false
	}
	return v.Essence() && p.Authored() || slices.ContainsFunc(v.Paths(), func(of dsl.Path) bool { return of.Covers(p) })
}
