// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Replaced is a value of another field manager that an apply by force has replaced.
type Replaced struct {
	Path fieldpath.Path
	Was  any
}

// At reports whether the value is that of a field.
func (r Replaced) At(field dsl.Path) bool { return r.Path.Equals(pathOf(field)) }

// The limits of one replaced value, and of a note of them, in bytes of JSON.
const (
	mostReplaced = 1 << 10
	mostNote     = 8 << 10
)

// ReplacedBy returns the values of other field managers that an apply of desired by force replaces. Values without an
// owner are not among them: which of these are defaults is not known.
func ReplacedBy(desired, live *unstructured.Unstructured, manager string) (out []Replaced) {
	_, others := managersOf(live, manager)
	k := knowing(desired.GroupVersionKind().GroupKind())
	for path := range others.Leaves().All() {
		want, wanted := valueAt(desired.Object, path)
		has, there := valueAt(live.Object, path)
		same := k.covers("", want, has, false) && k.covers("", has, want, false)
		if wanted && there && !same {
			out = append(out, Replaced{path.Copy(), has})
		}
	}
	return out
}

// PutBack returns the replaced values that come back when a field manager applies desired, which lacks their fields.
// A field that somebody else has set since belongs to them.
func PutBack(desired, live *unstructured.Unstructured, manager string, replaced []Replaced) []Replaced {
	own, others := managersOf(live, manager)
	return slices.DeleteFunc(slices.Clone(replaced), func(r Replaced) bool {
		_, wanted := valueAt(desired.Object, r.Path)
		return wanted || !own.Has(r.Path) || others.Has(r.Path)
	})
}

// With returns an object with values at their paths.
func With(o *unstructured.Unstructured, values []Replaced) *unstructured.Unstructured {
	out := o.DeepCopy()
	for _, each := range values {
		out.Object, _ = set(out.Object, each.Path, each.Was).(map[string]any)
	}
	return out
}

// Paths returns the paths of values as a set.
func Paths(values []Replaced) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, each := range values {
		out.Insert(each.Path)
	}
	return out
}

// storedReplaced is the form of a note. Version comes first: its key marks the annotation as an operator's.
type storedReplaced struct {
	Version  int           `json:"handwerk"`
	Replaced []storedValue `json:"replaced"`
}

type storedValue struct {
	Path []string `json:"path"`
	Was  any      `json:"was"`
}

// EncodeReplaced returns the note of replaced values, and the paths of those that are too large for it.
func EncodeReplaced(values []Replaced) (note string, large []string) {
	out, size := storedReplaced{Version: 1}, 0
	for _, each := range values {
		stored := storedValue{Was: each.Was}
		var fault error
		for _, element := range each.Path {
			text, err := fieldpath.SerializePathElement(element)
			if err != nil {
				fault = err
			}
			stored.Path = append(stored.Path, text)
		}
		text, err := json.Marshal(stored)
		if fault != nil || err != nil || len(text) > mostReplaced || size+len(text) > mostNote {
			large = append(large, each.Path.String())
			continue
		}
		size += len(text)
		out.Replaced = append(out.Replaced, stored)
	}
	if len(out.Replaced) == 0 {
		return "", large
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "", large // not reached: each value was encoded
	}
	return string(text), large
}

// DecodeReplaced reads a note of replaced values.
func DecodeReplaced(note string) (out []Replaced, err error) {
	var stored storedReplaced
	if err := utiljson.Unmarshal([]byte(note), &stored); err != nil {
		return nil, fmt.Errorf("decoding replaced values: %w", err)
	}
	for _, each := range stored.Replaced {
		r := Replaced{Was: each.Was}
		for _, text := range each.Path {
			element, err := fieldpath.DeserializePathElement(text)
			if err != nil {
				return nil, fmt.Errorf("decoding replaced values: %w", err)
			}
			r.Path = append(r.Path, element)
		}
		out = append(out, r)
	}
	return out, nil
}

// valueAt returns the value at a path of managedFields.
func valueAt(tree any, path fieldpath.Path) (value any, found bool) {
	for _, each := range path {
		switch at := tree.(type) {
		case map[string]any:
			if each.FieldName == nil {
				return nil, false
			}
			if tree, found = at[*each.FieldName]; !found {
				return nil, false
			}
		case []any:
			i := slices.IndexFunc(at, func(entry any) bool { return each.Key != nil && isItem(each, entry) })
			if i < 0 {
				return nil, false
			}
			tree = at[i]
		default:
			return nil, false
		}
	}
	return tree, true
}

// set returns a value with another one at a path.
func set(tree any, path fieldpath.Path, value any) any {
	if len(path) == 0 {
		return value
	}
	switch each := path[0]; {
	case each.FieldName != nil:
		at, _ := tree.(map[string]any)
		if at == nil {
			at = map[string]any{}
		}
		at[*each.FieldName] = set(at[*each.FieldName], path[1:], value)
		return at
	case each.Key != nil:
		at, _ := tree.([]any)
		i := slices.IndexFunc(at, func(entry any) bool { return isItem(each, entry) })
		if i < 0 {
			entry := map[string]any{}
			for _, key := range *each.Key {
				entry[key.Name] = key.Value.Unstructured()
			}
			i, at = len(at), append(at, entry)
		}
		at[i] = set(at[i], path[1:], value)
		return at
	}
	return tree
}
