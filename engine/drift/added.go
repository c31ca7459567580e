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

// Added is what people's hands have set of a child and the template does not have.
type Added struct {
	// Fields are the paths that are to be taken away, as managedFields have them; nil where nothing was looked at.
	Fields *fieldpath.Set
	// Whole are paths of what applying the template replaces as a whole. Paths are the others, as people read them, but
	// for what is inside of one of them.
	Whole, Paths []string
	// Managers are those who set any of it.
	Managers []string
}

// Empty reports whether there is nothing.
func (a Added) Empty() bool { return len(a.Paths) == 0 && len(a.Whole) == 0 }

// Search says what is looked for.
type Search struct {
	// Counts reports whether what an entry has is looked at.
	Counts func(metav1.ManagedFieldsEntry) bool
	// Own reports whether a label or an annotation is the operator's.
	Own func(key string) bool
	// Strict: every field that the template does not have, and not only those of lists and maps that it has.
	Strict bool
}

// search is one under way.
type search struct {
	Search
	knowledge
	found Added
	// some: the entry that is looked at has some of it.
	some bool
}

// Added finds what hands have set of a child that the template, which is desired, does not have, and that is to be
// taken away. What the child's managedFields do not say, or say of another version, cannot be known.
func (how Search) Added(desired, live *unstructured.Unstructured) Added {
	hands := slices.DeleteFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return !how.Counts(e) || e.APIVersion != desired.GetAPIVersion()
	})
	if len(hands) == 0 {
		return Added{} // as with nearly every child in every pass
	}
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

// FieldsOf reads the fields of an entry; what cannot be read is none.
func FieldsOf(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	out := &fieldpath.Set{}
	if e.FieldsV1 == nil || out.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return out
}

// elements are the members of a set and what has members below it.
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

// object looks at a whole object. Of its metadata only labels and annotations are anybody's to add to.
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

// metadata looks at labels and annotations. Those that tie a child to its owner are not the author's, nor are books
// anybody's to take away.
func (s *search) metadata(at fieldpath.Path, fields *fieldpath.Set, desired, live *unstructured.Unstructured) {
	for section, values := range map[string][2]map[string]string{
		"labels": {desired.GetLabels(), live.GetLabels()}, "annotations": {desired.GetAnnotations(), live.GetAnnotations()},
	} {
		want, has, key := values[0], values[1], fieldpath.FieldNameElement(section)
		theirs := false
		for label := range want {
			theirs = theirs || !s.Own(label)
		}
		if !theirs && !s.Strict {
			continue
		}
		for label := range fields.Children.Descend(key).Members.All() {
			if label.FieldName == nil || s.Own(*label.FieldName) || bookkeeping.Is(*label.FieldName, has[*label.FieldName]) {
				continue
			}
			if _, wanted := want[*label.FieldName]; !wanted {
				s.take(slices.Concat(at, fieldpath.Path{key}), label, fields.Children.Descend(key))
			}
		}
	}
}

// values looks at what an entry has inside of a value; key is that of the value, or of the list that it is in.
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

// field looks at a field of a map that the template has.
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

// item looks at an entry of a list that the template has. One that somebody else added is not the hand's, whatever it has
// set in it.
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

// take notes a field or an entry of a list, with all that the hand has inside of it.
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

// theirs leaves out what a hand has set in entries of lists that others added.
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

// isItem reports whether an entry of a list is the one that managedFields name. A port's protocol may be left open.
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

// exceeds reports whether there is something in a value that the wanted one does not have.
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

// people writes a path of managedFields as people read it.
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
