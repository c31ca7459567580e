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

// Form says how a cache holds the objects of one resource. The zero Form holds whole objects.
type Form struct {
	// Kind is the kind of the resource's objects, for the profiles metadata and live: a server that sends metadata
	// alone does not send the kind. Without it, trees of metadata have no kind.
	Kind string
	// Profile defaults to dsl.CacheCompact.
	Profile dsl.CacheProfile
	// Keep limits the compact profile to apiVersion, kind, metadata and these paths; [FormatPaths] formats it. Empty means
	// the whole object. Other profiles ignore it.
	Keep string
	// Notes limits the held annotations in the compact profile, for objects with few annotations; see [FormOf].
	// Empty means all.
	Notes string
	// Markers are prefixes of field managers, separated by commas. The managedFields entries of these managers are
	// held. The entries of other managers are dropped, unless Made or Own holds them. Empty drops all.
	Markers string
	// Made, when set, is the annotation of objects that the operator has made. For these, the entries of people are
	// held, too, to find their changes; and those of everyone but the control plane, where its value says that the
	// object's drift is strict.
	Made string
	// Own are the operator's field managers under all its names, separated by commas, the current one first: Made does not hold its
	// entries. Entries of all for another version than the object's are held, of custom resources that are no children: the CRD may
	// have dropped that version.
	Own string
	// Owner is the key of the label that names an owner other than the controller; see [Object.Owned]. Optional.
	Owner string
}

// FormOf returns the form of a profile that holds only what is needed.
func FormOf(profile dsl.CacheProfile, held dsl.Held) Form {
	return Form{Profile: profile, Keep: FormatPaths(held.Fields), Notes: strings.Join(held.Annotations, ",")}
}

// WithDefaults sets defaults and removes fields that the profile ignores, so that equivalent forms are equal.
func (f Form) WithDefaults() Form {
	if f.Profile == "" {
		f.Profile = dsl.CacheCompact
	}
	if f.Profile != dsl.CacheCompact {
		f.Keep, f.Notes = "", ""
	}
	if f.Profile == dsl.CacheLive {
		f.Markers, f.Made, f.Own = "", "", ""
	}
	return f
}

// Shows returns a function that reduces an object from the server to what a cache of this form has. The result
// shares values with it. The form is parsed once, not for each object.
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

// IsWhole reports whether a cache of this form has all parts of an object that handlers may change.
func (f Form) IsWhole() bool { return f.WithDefaults().Profile == dsl.CacheCompact && f.Keep == "" }

// FormatPaths formats paths for Form.Keep, sorted, so that the order of declaration does not matter.
func FormatPaths(paths []dsl.Path) string {
	texts := make([]string, 0, len(paths))
	for _, p := range paths {
		texts = append(texts, p.String())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ",")
}

// projection says which parts of a map are kept: its keys, each with a projection of the value. An empty projection
// keeps everything.
type projection map[string]projection

// always returns the parts that are kept of every object, so that encoding needs no exception for them.
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

// splitPaths splits at the commas outside of quoted keys.
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

// of returns the kept parts of a map, which is not changed. Paths do not go on in values that are not maps.
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
