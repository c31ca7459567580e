// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package child makes the objects that an object owns as its operator wants them, by server-side
// apply: owned by reference, adopted never silently, and without a request when nothing is
// different.
package child

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Plain reads what an author gave as an object: a map, an Unstructured or anything that is an
// object in JSON. Status and the creation timestamp, which typed values bring along empty, are
// left out. The result is a copy.
func Plain(value any) (*unstructured.Unstructured, error) {
	if u, ok := value.(*unstructured.Unstructured); ok {
		value = u.Object
	}
	plain, err := dsl.Plain(value)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	tree, ok := plain.(map[string]any)
	if !ok {
		return nil, errors.New("reading object: it is not an object in JSON")
	}
	u := &unstructured.Unstructured{Object: tree}
	delete(tree, "status")
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp")
	if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" {
		return nil, errors.New("reading object: apiVersion, kind and metadata.name are required")
	}
	return u, nil
}

// Owner is the object that children belong to.
type Owner struct {
	Object *unstructured.Unstructured
	// Namespaced says whether the owner has a namespace.
	Namespaced bool
}

// reference is the owner reference that children carry.
func (o Owner) reference() map[string]any {
	return map[string]any{
		"apiVersion":         o.Object.GetAPIVersion(),
		"kind":               o.Object.GetKind(),
		"name":               o.Object.GetName(),
		"uid":                string(o.Object.GetUID()),
		"controller":         true,
		"blockOwnerDeletion": true,
	}
}

// Desired completes what an author gave: the namespace, the owner reference, and the annotation
// that tells what the child was applied from. An owner with a namespace cannot own objects outside
// it: Kubernetes would delete them.
func (o Owner) Desired(value any, namespaced bool, appliedKey string) (*unstructured.Unstructured, error) {
	desired, err := Plain(value)
	if err != nil {
		return nil, err
	}
	if namespaced && desired.GetNamespace() == "" {
		desired.SetNamespace(o.Object.GetNamespace())
	}
	if o.Namespaced && desired.GetNamespace() != o.Object.GetNamespace() {
		return nil, dsl.Permanent(fmt.Errorf("applying %s %s: a child must be in the namespace of its owner, %s",
			desired.GetKind(), desired.GetName(), o.Object.GetNamespace()))
	}
	if err := unstructured.SetNestedSlice(desired.Object, []any{o.reference()}, "metadata", "ownerReferences"); err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	mark := dsl.AppliedMark + digest(withoutValues(desired))
	if err := unstructured.SetNestedField(desired.Object, mark, "metadata", "annotations", appliedKey); err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return desired, nil
}

// withoutValues hides the values of a Secret: not even their digest goes into an annotation.
// Changed values are seen by comparing with the live object.
func withoutValues(u *unstructured.Unstructured) any {
	if u.GetKind() != "Secret" || u.GetAPIVersion() != "v1" {
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
	data, err := json.Marshal(value)
	if err != nil {
		return "!" // not JSON: cannot come out of Plain
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// owned reports whether live is controlled by the owner, and by whom otherwise.
func (o Owner) owned(live *unstructured.Unstructured) (ours bool, by string) {
	ref := metav1.GetControllerOfNoCopy(live)
	switch {
	case ref == nil:
		return false, ""
	case ref.UID == o.Object.GetUID():
		return true, ""
	}
	return false, ref.Kind + " " + ref.Name
}
