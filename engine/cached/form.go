// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Form says how a cache holds the objects of one resource. The zero Form holds them whole.
type Form struct {
	// Kind is the kind of the resource's objects. Only the profiles metadata and live use it: a
	// server that sends metadata alone does not say the kind. Without it, trees of metadata have
	// none.
	Kind string
	// Profile defaults to dsl.CacheCompact.
	Profile dsl.CacheProfile
	// Keep limits what the compact profile holds to apiVersion, kind, metadata and these paths;
	// [Keep] writes it. Empty means the whole object. Other profiles ignore it.
	Keep string
	// Notes limits the annotations that the compact profile holds of objects that have few; see [FormOf]. Empty means all.
	Notes string
	// Manager is the field manager whose entries in managedFields are held; all others are
	// dropped, but for those that Markers and Made speak of. Empty drops all.
	Manager string
	// Markers are other field managers whose entries are held, of every object, separated by commas. With a slash at the end
	// one is how the names of some begin; what is before the slash is one, too. Optional.
	Markers string
	// Vouches, where it is set, limits that to objects with an annotation of this key whose value begins
	// with Vouched: only there does anybody ask whether the manager wrote it.
	Vouches, Vouched string
	// Made, where it is set, is the annotation that objects have which the operator has made: of those the entries of
	// people's hands are held, too, by which it is known what somebody has changed.
	Made string
	// Owner is the key of the label by which objects name an owner that does not control them; see [Object.Owned]. Optional.
	Owner string
}

// FormOf is the form of a profile in which no more is held than is needed.
func FormOf(profile dsl.CacheProfile, held dsl.Held) Form {
	return Form{Profile: profile, Keep: Keep(held.Fields), Notes: strings.Join(held.Annotations, ",")}
}

// WithDefaults fills in what is left open and drops what the profile ignores, so that forms that
// mean the same are equal.
func (f Form) WithDefaults() Form {
	if f.Profile == "" {
		f.Profile = dsl.CacheCompact
	}
	if f.Profile != dsl.CacheCompact {
		f.Keep, f.Notes = "", ""
	}
	if f.Profile == dsl.CacheLive {
		f.Manager, f.Markers, f.Vouches, f.Vouched, f.Made = "", "", "", "", ""
	}
	return f
}

// Shows returns a function that returns an object from the server as a cache of this form shows it. Values are shared
// with it. The form is read once, not for each object.
func (f Form) Shows() func(*unstructured.Unstructured) *unstructured.Unstructured {
	keep, err := parseKeep(f.Keep)
	if f.Profile == dsl.CacheMetadata {
		keep = always()
	}
	if err != nil || len(keep) == 0 {
		return func(o *unstructured.Unstructured) *unstructured.Unstructured { return o }
	}
	held := parseNotes(f.Notes)
	return func(o *unstructured.Unstructured) *unstructured.Unstructured {
		shown := keep.of(o.Object)
		if metadata, is := shown["metadata"].(map[string]any); is && held != nil {
			shown["metadata"] = held.of(metadata)
		}
		return &unstructured.Unstructured{Object: shown}
	}
}

// Whole reports whether a cache of this form has all of an object that handlers may change.
func (f Form) Whole() bool { return f.WithDefaults().Profile == dsl.CacheCompact && f.Keep == "" }

// Keep writes paths as Form.Keep wants them: sorted, so that the order in which they were
// declared makes no difference.
func Keep(paths []dsl.Path) string {
	texts := make([]string, 0, len(paths))
	for _, p := range paths {
		texts = append(texts, p.String())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ",")
}

// projection says what of a map is kept: the keys it has, each with what is kept below it. An
// empty projection keeps everything.
type projection map[string]projection

// always is what every object keeps; encoding needs no exception for it then.
func always() projection { return projection{"apiVersion": nil, "kind": nil, "metadata": nil} }

func parseKeep(text string) (projection, error) {
	if text == "" {
		return nil, nil
	}
	keep := always()
	for _, part := range splitPaths(text) {
		path, err := dsl.ParsePath(part)
		if err != nil {
			return nil, fmt.Errorf("reading what to keep: %w", err)
		}
		keep.add(path)
	}
	return keep, nil
}

// splitPaths cuts at the commas that are not part of a quoted key.
func splitPaths(text string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], `["`):
			if end := strings.Index(text[i:], `"]`); end > 0 {
				i += end + 1
			}
		case text[i] == ',':
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

func (p projection) add(path dsl.Path) {
	at := p
	for i, key := range path {
		below, found := at[key]
		switch {
		case found && len(below) == 0:
			return // a shorter path keeps all of it
		case i == len(path)-1:
			at[key] = nil
			return
		case !found:
			below = projection{}
			at[key] = below
		}
		at = below
	}
}

// of returns what is kept of a map, which is left as it is. A path that goes on where the value is not a map leads
// nowhere.
func (p projection) of(tree map[string]any) map[string]any {
	if len(p) == 0 {
		return tree
	}
	out := make(map[string]any, len(p))
	for key, below := range p {
		value, found := tree[key]
		sub, isMap := value.(map[string]any)
		switch {
		case !found || len(below) > 0 && !isMap:
		case isMap:
			out[key] = below.of(sub)
		default:
			out[key] = value
		}
	}
	return out
}
