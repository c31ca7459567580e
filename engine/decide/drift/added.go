// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// Added are fields of a child that others have set and that the template does not have.
type Added struct {
	// Fields are the paths to remove, in the form of managedFields; nil if nothing was searched.
	Fields *fieldpath.Set
	// Whole are paths that applying the template replaces as a whole. Paths are the others, in the form for people,
	// without those inside one of them.
	Whole, Paths []string
	// Managers are the field managers that set them.
	Managers []string
}

// Empty reports whether there are no such fields.
func (a Added) Empty() bool { return len(a.Paths) == 0 && len(a.Whole) == 0 }

// Search says which fields to search for.
type Search struct {
	// Own are the keys of the operator's labels and annotations.
	Own []string
	// By are the field managers whose fields are searched.
	By Others
	// Strict: every field that is not in the template, and not only entries of its lists and maps.
	Strict bool
}

// search is a search in progress.
type search struct {
	Search
	knowledge
	found Added
	// some: the current entry has some such field.
	some bool
}

// Added returns the fields of a child that others have set, that the desired template does not have, and that
// should be removed. Fields that the child's managedFields lack, or have for another version, are not found.
func (how Search) Added(desired, live *unstructured.Unstructured) Added {
	counts := func(e metav1.ManagedFieldsEntry) bool {
		return how.By.Set(e) && e.APIVersion == desired.GetAPIVersion()
	}
	if !slices.ContainsFunc(Managers(live), counts) {
		return Added{} // true for nearly every child in every reconcile
	}
	hands := slices.DeleteFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return !counts(e) })
	s := search{Search: how, knowledge: knowing(desired.GroupVersionKind().GroupKind())}
	s.found.Fields = fieldpath.NewSet()
	for _, e := range hands {
		s.some = false
		s.object(FieldsOf(e), desired, live)
		if s.some && !slices.Contains(s.found.Managers, e.Manager) {
			s.found.Managers = append(s.found.Managers, e.Manager)
		}
	}
	for _, paths := range []*[]string{&s.found.Paths, &s.found.Whole} {
		slices.Sort(*paths)
		*paths = slices.Compact(*paths)
	}
	return s.found
}

// Managers returns the entries of an object's managedFields without the fields and the time, which take long to decode.
func Managers(o *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	list, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "managedFields")
	entries, _ := list.([]any)
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries))
	for _, entry := range entries {
		tree, _ := entry.(map[string]any)
		text := func(key string) string { s, _ := tree[key].(string); return s }
		out = append(out, metav1.ManagedFieldsEntry{
			Manager: text("manager"), Operation: metav1.ManagedFieldsOperationType(text("operation")),
			APIVersion: text("apiVersion"), Subresource: text("subresource"),
		})
	}
	return out
}

// FieldsOf reads the fields of an entry; invalid ones count as empty.
func FieldsOf(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	out := &fieldpath.Set{}
	if e.FieldsV1 == nil || out.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return out
}

// elements returns the members of a set and the elements with members below them.
func elements(fields *fieldpath.Set) iter.Seq[fieldpath.PathElement] {
	return func(yield func(fieldpath.PathElement) bool) {
		for each := range fields.Members.All() {
			if _, deeper := fields.Children.Get(each); !deeper && !yield(each) {
				return
			}
		}
		for each := range fields.Children.All() {
			if !yield(each) {
				return
			}
		}
	}
}

// object searches a whole object. In its metadata, only labels and annotations count.
func (s *search) object(fields *fieldpath.Set, desired, live *unstructured.Unstructured) {
	for each := range elements(fields) {
		switch {
		case each.FieldName == nil, *each.FieldName == "status":
		case *each.FieldName == "metadata":
			s.metadata(fieldpath.Path{each}, fields.Children.Descend(each), desired, live)
		default:
			s.field(nil, "", fields, each, desired.Object, live.Object)
		}
	}
}

// metadata searches labels and annotations. It skips those that tie a child to its owner, and bookkeeping.
func (s *search) metadata(at fieldpath.Path, fields *fieldpath.Set, desired, live *unstructured.Unstructured) {
	for section, values := range map[string][2]map[string]string{
		"labels": {desired.GetLabels(), live.GetLabels()}, "annotations": {desired.GetAnnotations(), live.GetAnnotations()},
	} {
		want, has, key := values[0], values[1], fieldpath.FieldNameElement(section)
		theirs := false
		for label := range want {
			theirs = theirs || !slices.Contains(s.Own, label)
		}
		if !theirs && !s.Strict {
			continue
		}
		for label := range fields.Children.Descend(key).Members.All() {
			if label.FieldName == nil || slices.Contains(s.Own, *label.FieldName) || bookkeeping.Is(*label.FieldName, has[*label.FieldName]) {
				continue
			}
			if _, wanted := want[*label.FieldName]; !wanted {
				s.take(slices.Concat(at, fieldpath.Path{key}), label, fields.Children.Descend(key))
			}
		}
	}
}

// values searches an entry's fields inside a value; key is the key of the value, or of the list that it is in.
func (s *search) values(at fieldpath.Path, key string, fields *fieldpath.Set, want, has any) {
	for each := range elements(fields) {
		switch inner := want.(type) {
		case map[string]any:
			if other, _ := has.(map[string]any); each.FieldName != nil {
				s.field(at, key, fields, each, inner, other)
			}
		case []any:
			if other, _ := has.([]any); each.Key != nil || each.Value != nil {
				s.item(at, key, fields, each, inner, other)
			}
		}
	}
}

// field searches a field of a map in the template.
func (s *search) field(at fieldpath.Path, key string, fields *fieldpath.Set, each fieldpath.PathElement, want, has map[string]any) {
	name := *each.FieldName
	value, wanted := want[name]
	inner, deeper := fields.Children.Get(each)
	switch {
	case !wanted && (s.Strict || s.free(key, want)):
		s.take(at, each, fields)
	case !wanted:
	case deeper:
		s.values(append(slices.Clip(at), each), name, inner, value, has[name])
	case s.replaced(name, value) && exceeds(value, has[name]):
		s.some = true
		s.found.Whole = append(s.found.Whole, people(append(slices.Clip(at), each)))
	}
}

// item searches an entry of a list in the template. An entry that somebody else added does not count, even if
// people have set fields in it.
func (s *search) item(at fieldpath.Path, key string, fields *fieldpath.Set, each fieldpath.PathElement, want, has []any) {
	i := slices.IndexFunc(want, func(w any) bool { return isItem(each, w) })
	switch {
	case i >= 0:
		var other any
		if j := slices.IndexFunc(has, func(h any) bool { return isItem(each, h) }); j >= 0 {
			other = has[j]
		}
		s.values(append(slices.Clip(at), each), key, fields.Children.Descend(each), want[i], other)
	case fields.Members.Has(each):
		s.take(at, each, fields)
	}
}

// take notes a field or an entry of a list, with all of the entry's fields inside it.
func (s *search) take(at fieldpath.Path, each fieldpath.PathElement, fields *fieldpath.Set) {
	path := append(slices.Clip(at), each)
	some := fields.Members.Has(each)
	if some {
		s.found.Fields.Insert(path.Copy())
	}
	for below := range theirs(fields.Children.Descend(each)).All() {
		some = true
		s.found.Fields.Insert(slices.Concat(path, below).Copy())
	}
	if some {
		s.some = true
		s.found.Paths = append(s.found.Paths, people(path))
	}
}

// theirs removes fields that people have set in list entries of others.
func theirs(fields *fieldpath.Set) *fieldpath.Set {
	out := fieldpath.NewSet()
	for each := range fields.Members.All() {
		out.Insert(fieldpath.Path{each})
	}
	for each := range fields.Children.All() {
		if each.Key != nil && !fields.Members.Has(each) {
			continue
		}
		out = out.Union(theirs(fields.Children.Descend(each)).WithPrefix(each))
	}
	return out
}

// isItem reports whether a list entry is the one in managedFields. A port's protocol may be omitted.
func isItem(which fieldpath.PathElement, entry any) bool {
	if which.Value != nil {
		return sameScalar((*which.Value).Unstructured(), entry)
	}
	of, isMap := entry.(map[string]any)
	if which.Key == nil || !isMap {
		return false
	}
	same := 0
	for _, key := range *which.Key {
		has, found := of[key.Name]
		if !found && key.Name == "protocol" {
			has, found = "TCP", true
		}
		if found && !sameScalar(key.Value.Unstructured(), has) {
			return false
		}
		if found {
			same++
		}
	}
	return same > 0
}

// exceeds reports whether a value has something that the wanted one does not have.
func exceeds(want, has any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, _ := has.(map[string]any)
		return len(h) > len(w)
	case []any:
		h, _ := has.([]any)
		return len(h) > len(w)
	}
	return false
}

// people formats a path of managedFields for people.
func people(path fieldpath.Path) string {
	var b strings.Builder
	var plain dsl.Path
	flush := func() {
		if len(plain) > 0 && b.Len() > 0 && !strings.HasPrefix(plain.String(), "[") {
			b.WriteByte('.')
		}
		b.WriteString(plain.String())
		plain = nil
	}
	for _, each := range path {
		switch {
		case each.FieldName != nil:
			plain = append(plain, *each.FieldName)
		case each.Key != nil:
			flush()
			first := (*each.Key)[0]
			fmt.Fprintf(&b, "[%s=%v]", first.Name, first.Value.Unstructured())
		case each.Value != nil:
			flush()
			fmt.Fprintf(&b, "[%v]", (*each.Value).Unstructured())
		}
	}
	flush()
	return b.String()
}
