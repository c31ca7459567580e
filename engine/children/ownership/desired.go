// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Complete completes an object from [dsl.Object] in place. It sets the namespace, the ties to the owner, the title, and
// the mark of the template. An owner with a namespace cannot have an owner reference in objects outside it: Kubernetes
// would delete them.
func (o Owner) Complete(desired *unstructured.Unstructured, namespaced bool, spec dsl.ChildSpec) error {
	switch {
	case !namespaced:
		desired.SetNamespace("")
	case desired.GetNamespace() == "":
		desired.SetNamespace(o.Object.GetNamespace())
	}
	if o.is(desired) {
		return dsl.Permanent(fmt.Errorf("applying %s: an object cannot be a child of itself: give the child another name", PlaceOf(desired).Describe()))
	}
	if spec.ByReference() && o.Namespaced && desired.GetNamespace() != o.Object.GetNamespace() {
		return dsl.Permanent(fmt.Errorf("applying %s: an owned child must be in the namespace of its owner, %s (elsewhere it needs ownership: labelled)",
			PlaceOf(desired).Describe(), o.Object.GetNamespace()))
	}
	encodeValues(desired)
	template := ""
	if isSecret(desired) && (spec.Update == dsl.UpdateRecreate || spec.Update == dsl.UpdateOnDelete) {
		return dsl.Permanent(fmt.Errorf("applying %s: update %s is not for Secrets: which values were applied is not kept", PlaceOf(desired).Describe(), spec.Update))
	}
	if spec.Update != "" { // without the ties, so that a renamed handler updates the child in place
		template = bookkeeping.TemplateMark + digest(withoutValues(desired))
	}
	if err := o.tie(desired, spec); err != nil {
		return fmt.Errorf("reading object %s: %w", PlaceOf(desired).Describe(), err)
	}
	mark := bookkeeping.AppliedMark
	if spec.Drift == dsl.DriftStrict {
		mark = bookkeeping.StrictMark
	}
	mark += digest(withoutValues(desired)) + template
	if err := unstructured.SetNestedField(desired.Object, mark, "metadata", "annotations", o.Keys.Applied); err != nil {
		return fmt.Errorf("reading object %s: %w", PlaceOf(desired).Describe(), err)
	}
	return nil
}

// is reports whether an object would be the owner itself.
func (o Owner) is(desired *unstructured.Unstructured) bool {
	return desired.GroupVersionKind().GroupKind() == o.Object.GroupVersionKind().GroupKind() &&
		desired.GetNamespace() == o.Object.GetNamespace() && desired.GetName() == o.Object.GetName()
}

// tie ties a child to its owner, and removes marks that were copied from another child or from the owner.
func (o Owner) tie(desired *unstructured.Unstructured, spec dsl.ChildSpec) error {
	labels, notes := map[string]any{}, map[string]any{}
	switch {
	case spec.ByReference():
		reference := map[string]any{
			"apiVersion": o.Object.GetAPIVersion(), "kind": o.Object.GetKind(), "name": o.Object.GetName(),
			"uid": string(o.Object.GetUID()), "controller": true, "blockOwnerDeletion": true,
		}
		if err := unstructured.SetNestedSlice(desired.Object, []any{reference}, "metadata", "ownerReferences"); err != nil {
			return err
		}
	case spec.Ownership == dsl.Unowned:
		notes[o.Keys.Owner] = o.Name().String()
	case spec.OnDelete == dsl.RetainChild:
		labels[o.Keys.Label], notes[o.Keys.Owner] = o.Name().Retained(), o.Name().String()
	default:
		labels[o.Keys.Label], notes[o.Keys.Owner] = string(o.Object.GetUID()), o.Name().String()
	}
	if title := Title(spec); title != "" {
		notes[o.Keys.Child] = title
	}
	if err := set(desired, "labels", []string{o.Keys.Label}, labels); err != nil {
		return err
	}
	withoutFinalizer(desired, o.Keys.Prefix+"/finalizer")
	own := []string{o.Keys.Child, o.Keys.Owner, o.Keys.Applied, o.Keys.Inventory, o.Keys.Prefix + "/state", o.Keys.Prefix + "/retry"}
	return set(desired, "annotations", own, notes)
}

// withoutFinalizer removes a finalizer that was copied from the owner: nobody would remove it from the child.
func withoutFinalizer(u *unstructured.Unstructured, name string) {
	if list := u.GetFinalizers(); slices.Contains(list, name) {
		u.SetFinalizers(slices.DeleteFunc(list, func(f string) bool { return f == name }))
	}
}

// set sets the given keys of a map in metadata to their wanted values, and removes keys without one.
func set(u *unstructured.Unstructured, field string, keys []string, wanted map[string]any) error {
	if value, found, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", field); found && value == nil {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for _, key := range keys {
		unstructured.RemoveNestedField(u.Object, "metadata", field, key)
	}
	for key, value := range wanted {
		if err := unstructured.SetNestedField(u.Object, value, "metadata", field, key); err != nil {
			return err
		}
	}
	return nil
}

// encodeValues writes the values of a Secret and the binary values of a ConfigMap as the server does. A field manager
// that sent stringData would not own the data that the server makes of it, so a removed key would stay.
func encodeValues(u *unstructured.Unstructured) {
	if u.GetAPIVersion() != "v1" {
		return
	}
	field := map[string]string{"Secret": "data", "ConfigMap": "binaryData"}[u.GetKind()]
	values, _ := u.Object[field].(map[string]any)
	for key, value := range values {
		if text, ok := value.(string); ok {
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				values[key] = base64.StdEncoding.EncodeToString(raw)
			}
		}
	}
	texts, ok := u.Object["stringData"].(map[string]any)
	if u.GetKind() != "Secret" || !ok {
		return
	}
	if values == nil {
		values = map[string]any{}
	}
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return // the server describes the fault best
		}
		values[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(u.Object, "stringData")
	u.Object["data"] = values
}

func isSecret(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"
}

// withoutValues hides the values of a Secret: not even their digest goes into an annotation. A comparison with the live
// object shows changed values.
func withoutValues(u *unstructured.Unstructured) any {
	if !isSecret(u) {
		return u.Object
	}
	hidden := u.DeepCopy()
	for _, section := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(hidden.Object, section)
		for key := range values {
			values[key] = ""
		}
		if values != nil {
			hidden.Object[section] = values
		}
	}
	return hidden.Object
}

func digest(value any) string {
	text, err := plain.Digest(value)
	if err != nil {
		return "!" // not JSON: cannot come out of dsl.Object
	}
	return text
}
