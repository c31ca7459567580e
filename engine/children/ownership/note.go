// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// noteSuffix returns the end of the key of the annotation with the values that a target's manager has replaced. The
// annotation is on the object itself, because people who may change the object may change the values, too.
func noteSuffix(manager string) string { return "/replaced-" + short(manager) }

// NoteKey returns the key of the annotation of replaced values; empty if the object has none, or if somebody else has
// written it. A renamed operator may have written it under another prefix.
func (t Target) NoteKey(live *unstructured.Unstructured) string {
	if key, own := t.noteKey(live); own {
		return key
	}
	return ""
}

// noteKey returns the key of the note, and whether the target's manager has written it. The manager and the key begin
// with the name that the operator had then.
func (t Target) noteKey(live *unstructured.Unstructured) (key string, own bool) {
	operator, _, _ := strings.Cut(t.Manager, "/")
	if len(operator) < mostOperator {
		operator += "." // the name is not cut off
	}
	fields := drift.OwnFields(live, t.Manager)
	for _, each := range slices.Sorted(maps.Keys(live.GetAnnotations())) {
		if !strings.HasPrefix(each, operator) || !strings.HasSuffix(each, noteSuffix(t.Manager)) {
			continue
		}
		if key = each; fields.Has(fieldpath.MakePathOrDie("metadata", "annotations", key)) {
			return key, true
		}
	}
	return key, false
}

// Replaced returns the values that the target's manager has replaced. The error says why its note does not count.
func (t Target) Replaced(live *unstructured.Unstructured) ([]drift.Replaced, error) {
	switch key, own := t.noteKey(live); {
	case own:
		return drift.DecodeReplaced(Annotation(live, key))
	case key != "":
		return nil, fmt.Errorf("somebody else has written annotation %s", key)
	}
	return nil, nil
}

// ReplacedBy returns a function for [drift.Taking]. It returns the values that a field manager has replaced, as far as
// they can be read. It also reports whether the manager belongs to a target of any owner, handler and operator.
func ReplacedBy(live *unstructured.Unstructured) func(manager string) (values []drift.Replaced, patches bool) {
	return func(manager string) ([]drift.Replaced, bool) {
		values, _ := Target{Manager: manager}.Replaced(live) // the error is reported when that target is released
		return values, isPatcher(manager)
	}
}

// IsSecret reports whether the target is a Secret. Its values are never noted.
func (t Target) IsSecret() bool { return t.Kind == schema.GroupKind{Kind: "Secret"} }

// Noted returns fields to apply, with the note that the object has.
func (t Target) Noted(fields, live *unstructured.Unstructured) *unstructured.Unstructured {
	key := t.NoteKey(live)
	return t.withNote(fields, key, Annotation(live, key))
}

// WithoutNote returns fields without their note.
func (t Target) WithoutNote(fields *unstructured.Unstructured) *unstructured.Unstructured {
	return t.withNote(fields, "", "")
}

// Note returns fields to apply with a note of replaced values, and the paths of values that are too large for it. Prefix
// begins the key if the object has no note yet.
func (t Target) Note(prefix string, fields, live *unstructured.Unstructured, values []drift.Replaced) (noted *unstructured.Unstructured, large []string) {
	key := cmp.Or(t.NoteKey(live), prefix+noteSuffix(t.Manager))
	note, large := drift.EncodeReplaced(values, roomFor(key, fields, live))
	return t.withNote(fields, key, note), large
}

// mostAnnotations is how many bytes the API server accepts as the annotations of an object, keys and values together.
const mostAnnotations = 256 << 10

// roomFor returns how many bytes an annotation may have beside the other annotations that an object has and gets.
func roomFor(key string, fields, live *unstructured.Unstructured) int {
	all := map[string]string{}
	maps.Copy(all, live.GetAnnotations())
	maps.Copy(all, fields.GetAnnotations())
	delete(all, key)
	room := mostAnnotations - len(key)
	for other, value := range all {
		room -= len(other) + len(value)
	}
	return room
}

// withNote returns fields with one note, or with none if it is empty.
func (t Target) withNote(fields *unstructured.Unstructured, key, note string) *unstructured.Unstructured {
	out := fields.DeepCopy()
	notes := out.GetAnnotations()
	before := len(notes)
	maps.DeleteFunc(notes, func(key, _ string) bool { return strings.HasSuffix(key, noteSuffix(t.Manager)) })
	if note != "" {
		if notes == nil {
			notes = map[string]string{}
		}
		notes[key] = note
	}
	switch {
	case len(notes) > 0:
		out.SetAnnotations(notes)
	case before > 0:
		out.SetAnnotations(nil)
	}
	return out
}
