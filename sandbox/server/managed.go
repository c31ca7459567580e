// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// bookkeeping are the fields that have no manager.
var bookkeeping = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"), fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "clusterName"),
	fieldpath.MakePathOrDie("metadata", "generation"), fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// maxUpdaters is how many entries of updates an object has before the oldest ones are merged.
const maxUpdaters = 10

// managing is how the fields of a request's object are managed.
type managing struct {
	// now is the time of the request.
	now   string
	kind  schema.GroupVersionKind
	types managedfields.TypeConverter
	// form is the schema of the request's version, which sets defaults. It is nil where the server has no schema for it.
	form Schema
	// checked: objects were decoded into a Go type, so each field has its type.
	checked bool
	// resets are the fields that the request cannot change, by version.
	resets map[fieldpath.APIVersion]fieldpath.Filter
}

// note gives next its managedFields after a write other than apply, as [managedfields.FieldManager] does. That one decodes and
// encodes the entries of all managers. A write changes few of them, so note edits them as they are. It returns false, and
// leaves next as it was, for the rare writes that need more: the client changes the entries, one of them is of another
// version, there are too many, or a field is not of its type.
func (m managing) note(r Request, old, next *unstructured.Unstructured) bool {
	version := m.kind.GroupVersion().String()
	metadata, _ := next.Object["metadata"].(map[string]any)
	was, known := entriesBefore(r, old, metadata, version)
	if metadata == nil || !known || old.GetAPIVersion() != version || next.GetAPIVersion() != version {
		return false
	}
	if len(was) == 0 && old.GetUID() != "" {
		delete(metadata, "managedFields") // the object was stored without, so the managers of its fields are not known
		return true
	}
	change, err := m.compare(old, next)
	if err != nil {
		return false
	}
	if filter := m.resets[fieldpath.APIVersion(version)]; filter != nil {
		change.FilterFields(filter)
	}
	now := entriesAfter(was, change, m.entry(r, metav1.ManagedFieldsOperationUpdate))
	if updates := slices.DeleteFunc(slices.Clone(now), isApplied); len(updates) > maxUpdaters {
		return false
	}
	if delete(metadata, "managedFields"); len(now) > 0 {
		metadata["managedFields"] = now
	}
	return true
}

// entry returns the entry of a request's manager without its fields.
func (m managing) entry(r Request, operation metav1.ManagedFieldsOperationType) map[string]any {
	out := map[string]any{
		"apiVersion": m.kind.GroupVersion().String(), "fieldsType": "FieldsV1", "manager": r.manager(), "operation": string(operation), "time": m.now,
	}
	if r.Subresource != "" {
		out["subresource"] = r.Subresource
	}
	return out
}

// first returns the new object that comes of an apply: what is applied, with its defaults, and with its fields as the manager's. It
// returns nil for what the library has to refuse or to change.
func (m managing) first(r Request, intent *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := intent.Object["metadata"].(map[string]any)
	if metadata == nil || intent.GroupVersionKind() != m.kind || r.manager() == "kubectl" { // which has an annotation for what it applied
		return nil
	}
	of, err := m.types.ObjectToTyped(intent)
	if err != nil {
		return nil
	}
	fields, err := of.ToFieldSet()
	if err != nil {
		return nil
	}
	if filter := m.resets[fieldpath.APIVersion(m.kind.GroupVersion().String())]; filter != nil {
		fields = filter.Filter(fields)
	}
	out := intent.DeepCopy()
	if m.form != nil {
		m.form.Default(out.Object)
	}
	if fields = fields.Difference(bookkeeping); !fields.Empty() {
		own := m.entry(r, metav1.ManagedFieldsOperationApply)
		own["fieldsV1"] = with(nil, fields)
		out.Object["metadata"].(map[string]any)["managedFields"] = []any{own}
	}
	return out
}

// entriesBefore returns the entries that a write starts with: the stored ones. It is false if the client sends others, or if one
// is not of the version.
func entriesBefore(r Request, old *unstructured.Unstructured, metadata map[string]any, version string) (stored []any, known bool) {
	before, _ := old.Object["metadata"].(map[string]any)
	stored = distinct(before)
	sent, _ := metadata["managedFields"].([]any)
	if r.Subresource == "" && sent != nil && !reflect.DeepEqual(sent, before["managedFields"]) {
		return nil, false
	}
	other := slices.ContainsFunc(stored, func(e any) bool {
		entry, _ := e.(map[string]any)
		_, is := entry["fieldsV1"].(map[string]any)
		return !is || entry["apiVersion"] != version
	})
	return stored, !other
}

// compare returns the fields in which two objects differ. Members that are equal are left out: their types were checked when
// they were stored.
func (m managing) compare(old, next *unstructured.Unstructured) (*typed.Comparison, error) {
	a, b := maps.Clone(old.Object), maps.Clone(next.Object)
	SetAside(a)
	SetAside(b)
	for key, value := range a {
		if other, both := b[key]; both && key != "apiVersion" && key != "kind" && reflect.DeepEqual(value, other) {
			delete(a, key)
			delete(b, key)
		}
	}
	was, err := m.typed(a)
	if err != nil {
		return nil, err
	}
	is, err := m.typed(b)
	if err != nil {
		return nil, err
	}
	return was.Compare(is)
}

// typed returns an object with the types of its fields.
func (m managing) typed(object map[string]any) (*typed.TypedValue, error) {
	whole := &unstructured.Unstructured{Object: object}
	if !m.checked {
		return m.types.ObjectToTyped(whole, typed.AllowDuplicates)
	}
	head := &unstructured.Unstructured{}
	head.SetGroupVersionKind(m.kind)
	of, err := m.types.ObjectToTyped(head)
	if err != nil {
		return nil, err
	}
	//nolint:staticcheck // checking takes as long as comparing, and comes to nothing
	return typed.AsTypedUnvalidated(value.NewValueInterface(object), of.Schema(), of.TypeRef()), nil
}

// entriesAfter returns the entries after a change by a manager, whose own entry has no fields yet. It does not change the
// entries before: they are those of stored objects.
func entriesAfter(before []any, change *typed.Comparison, own map[string]any) (after []any) {
	taken := change.Modified.Union(change.Added)
	gone, gained := taken.Union(change.Removed), taken.Difference(bookkeeping)
	left := map[string]any(nil)
	for _, e := range before {
		entry := e.(map[string]any)
		fields := entry["fieldsV1"].(map[string]any)
		switch rest := without(fields, gone); {
		case !gained.Empty() && sameManager(entry, own):
			left = rest // it gets the fields that are gained, too
		case sameMap(rest, fields):
			after = append(after, entry)
		case len(rest) > 0:
			entry = maps.Clone(entry)
			entry["fieldsV1"] = rest
			after = append(after, entry)
		}
	}
	if !gained.Empty() {
		own["fieldsV1"] = with(left, gained)
		after = append(after, own)
	}
	slices.SortFunc(after, byManager)
	return after
}

// sameManager reports whether an entry is that of a manager.
func sameManager(entry, manager map[string]any) bool {
	return entry["manager"] == manager["manager"] && entry["operation"] == manager["operation"] && entry["subresource"] == manager["subresource"]
}

func isApplied(entry any) bool {
	return entry.(map[string]any)["operation"] == string(metav1.ManagedFieldsOperationApply)
}

// byManager is the order of entries.
func byManager(a, b any) int {
	compare := func(key string) int {
		x, _ := a.(map[string]any)[key].(string)
		y, _ := b.(map[string]any)[key].(string)
		return cmp.Compare(x, y)
	}
	return cmp.Or(compare("operation"), compare("time"), compare("manager"), compare("subresource"))
}
