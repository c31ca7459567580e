// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Replaced is a value that a field had before a field manager took it.
type Replaced struct {
	Path fieldpath.Path
	Was  any
}

// At reports whether the value is that of a field.
func (r Replaced) At(field dsl.Path) bool { return r.Path.Equals(pathOf(field)) }

// Taking has the inputs for finding out which values a field manager replaces when it applies desired.
type Taking struct {
	Desired, Live *unstructured.Unstructured
	Manager       string
	// Fields are the fields that the manager owns afterwards. A dry run returns them in the form of the server's schema.
	Fields *fieldpath.Set
	// Noted returns the values that a manager has replaced. Patches reports whether it patches the object for an owner: the
	// values that it has set are nobody's original.
	Noted func(manager string) (values []Replaced, patches bool)
	// Kept are fields whose values stay after a release anyway. They are noted only if somebody owns them.
	Kept []dsl.Path
}

// Replaced returns the values that were there before the fields came to the manager, and values that it shares with somebody and
// changes. Those that somebody else keeps are not among them.
func (t Taking) Replaced() (out []Replaced) {
	o := t.originals()
	for path := range t.Fields.Leaves().All() {
		at, has := nearest(t.Live.Object, path)
		if was, found := o.of(at, has); has != nil && found && !Paths(out).Has(at) {
			out = append(out, Replaced{at.Copy(), was})
		}
	}
	return out
}

// originals finds the values that come back, with the fields of the manager and of all others.
type originals struct {
	Taking
	own    *fieldpath.Set
	others []holder
}

type holder struct {
	manager string
	fields  *fieldpath.Set
}

func (t Taking) originals() originals {
	out := originals{Taking: t, own: OwnFields(t.Live, t.Manager)}
	for _, e := range t.Live.GetManagedFields() {
		if !appliedBy(e, t.Manager) {
			out.others = append(out.others, holder{e.Manager, FieldsOf(e)})
		}
	}
	return out
}

// of returns the value that comes back when the manager gives up a field that has a value now. A value without an owner,
// such as a default or one of an earlier owner, would go with the field.
func (o originals) of(path fieldpath.Path, has any) (was any, found bool) {
	want, _ := valueAt(o.Desired.Object, path)
	k := knowing(o.Desired.GroupVersionKind().GroupKind())
	same := k.covers("", want, has, false) && k.covers("", has, want, false)
	held, own := false, hasWithin(o.own, path)
	for _, other := range o.others {
		if !hasWithin(other.fields, path) {
			continue
		}
		held = true
		noted, patches := o.Noted(other.manager)
		if !patches {
			return has, !same && (!isEmptyMap(want) || !isMap(has)) // an empty map does not replace the keys of others
		}
		if !found && !own {
			was, found = valueIn(noted, path)
		}
	}
	if held || own {
		return was, found
	}
	kept := slices.ContainsFunc(o.Kept, func(field dsl.Path) bool { return path.Equals(pathOf(field)) })
	return has, !kept && !appliesOther(o.Live, o.Manager)
}

// appliesOther reports whether a manager has applied an object in another version, whose fields may have other names.
func appliesOther(live *unstructured.Unstructured, manager string) bool {
	version := AppliedVersion(live, manager)
	return version != "" && version != live.GetAPIVersion()
}

// After returns the values to note after an apply: new ones, and earlier ones whose fields the manager has owned all the
// time.
func After(earlier, news []Replaced, live *unstructured.Unstructured, manager string) []Replaced {
	own, is := OwnFields(live, manager), Paths(news)
	stay := slices.DeleteFunc(slices.Clone(earlier), func(r Replaced) bool { return is.Has(r.Path) || !hasWithin(own, r.Path) })
	return append(stay, news...)
}

// Restored returns the replaced values that come back when a field manager applies desired, which lacks their fields.
// A field that somebody else has set since belongs to them.
func Restored(desired, live *unstructured.Unstructured, manager string, replaced []Replaced) []Replaced {
	own, others := managersOf(live, manager)
	return slices.DeleteFunc(slices.Clone(replaced), func(r Replaced) bool {
		_, wanted := valueAt(desired.Object, r.Path)
		return wanted || !hasWithin(own, r.Path) || hasWithin(others, r.Path) || appliesOther(live, manager)
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

// valueIn returns the value at a path.
func valueIn(values []Replaced, path fieldpath.Path) (was any, found bool) {
	at := slices.IndexFunc(values, func(r Replaced) bool { return r.Path.Equals(path) })
	if at < 0 {
		return nil, false
	}
	return values[at].Was, true
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
			i := slices.IndexFunc(at, func(entry any) bool { return isItem(each, entry) })
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

// nearest returns the value at a path. If a value of another type is on the way, it returns that value and its path,
// because it goes as a whole.
func nearest(tree any, path fieldpath.Path) (at fieldpath.Path, value any) {
	for i, each := range path {
		_, isList := tree.([]any)
		if i > 0 && tree != nil && (each.FieldName != nil && !isMap(tree) || each.FieldName == nil && !isList) {
			return path[:i], tree
		}
		tree, _ = valueAt(tree, path[i:i+1])
	}
	return path, tree
}

func isMap(value any) bool {
	_, is := value.(map[string]any)
	return is
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
	case each.Value != nil:
		at, _ := tree.([]any)
		if !slices.ContainsFunc(at, func(entry any) bool { return isItem(each, entry) }) {
			at = append(at, value)
		}
		return at
	}
	return tree
}
