// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// MayReplace reports whether there may be replaced values, as far as that is known without the fields. It is not sure about lists of
// which nobody owns an entry, and about maps that are replaced as a whole: then it returns true.
func (t Taking) MayReplace() bool {
	o := t.originals()
	all := o.own
	for _, other := range o.others {
		all = all.Union(other.fields)
	}
	return o.may(nil, all, fieldsIn(t.Desired), t.Live.Object)
}

// may checks the map at a path; all has the fields of all managers in it.
func (o originals) may(at fieldpath.Path, all *fieldpath.Set, want, has map[string]any) bool {
	for key, wanted := range want {
		if o.mayAt(append(slices.Clip(at), fieldpath.FieldNameElement(key)), all, wanted, has[key]) {
			return true
		}
	}
	return false
}

// mayAt checks the value at a path; all has the fields of all managers in the map or list around it.
func (o originals) mayAt(path fieldpath.Path, all *fieldpath.Set, want, has any) bool {
	if want == nil || has == nil {
		return false
	}
	last := path[len(path)-1]
	below, deeper := all.Children.Get(last)
	if !deeper {
		below = fieldpath.NewSet()
	}
	switch want := want.(type) {
	case map[string]any:
		if existing, both := has.(map[string]any); both && len(want) > 0 {
			return o.may(path, below, want, existing)
		}
	case []any:
		existing, _ := has.([]any)
		if !deeper && all.Members.Has(last) {
			break // the list is one field
		}
		return slices.ContainsFunc(want, func(item any) bool {
			each, known := elementOf(below, item)
			at := slices.IndexFunc(existing, func(entry any) bool { return known && isItem(each, entry) })
			return !known || at >= 0 && o.mayAt(append(slices.Clip(path), each), below, item, existing[at])
		})
	}
	_, found := o.of(path, has)
	return found
}

// elementOf returns the path element of an entry of a list, if the fields have other entries of the list.
func elementOf(list *fieldpath.Set, entry any) (out fieldpath.PathElement, known bool) {
	for _, each := range slices.Collect(elements(list)) { // the iterator of a set cannot be left early
		of, isMap := entry.(map[string]any)
		switch {
		case each.Value != nil && !isMap:
			is := value.NewValueInterface(entry)
			return fieldpath.PathElement{Value: &is}, true
		case each.Key != nil && isMap:
			keys := slices.Clone(*each.Key)
			for i := range keys {
				has, found := of[keys[i].Name]
				if !found {
					return out, false // it has a default
				}
				keys[i].Value = value.NewValueInterface(has)
			}
			return fieldpath.PathElement{Key: &keys}, true
		}
	}
	return out, false
}
