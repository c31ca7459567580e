// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// Keys are the keys of the marks that an operator writes onto children.
type Keys struct {
	// Applied is the annotation with the mark of the template. Child is the annotation with the title, and Owner the
	// annotation with the owner's name.
	Applied, Child, Owner string
	// Label is the label by which children without an owner reference are found.
	Label string
	// Inventory is the annotation of the owner that lists its labelled children.
	Inventory string
	// Prefix begins all of them, and the operator's finalizer.
	Prefix string
}

// KeysOf returns the keys of an operator.
func KeysOf(op *dsl.Operator) Keys {
	return Keys{
		Applied: op.AppliedAnnotation(), Child: op.ChildAnnotation(), Owner: op.OwnerAnnotation(), Label: op.OwnerLabel(),
		Inventory: op.ChildrenAnnotation(), Prefix: op.Prefix(),
	}
}

// Own reports whether a label, an annotation or a finalizer is the operator's own.
func (k Keys) Own(key string) bool { return strings.HasPrefix(key, k.Prefix+"/") }

// Maker returns the handler or step that made an object, as its annotation says; empty if it does not say.
func (k Keys) Maker(live metav1.Object) string {
	s, _ := ParseTitle(Annotation(live, k.Child))
	return s.Handler
}

// Made reports whether an object has the mark of an apply by the operator.
func (k Keys) Made(live metav1.Object) bool { return applied(live, k.Applied) }

// OwnerOf returns the owner that an object names: by a reference to its controller, or else by the label and an
// annotation. Referred is true for a reference. Namespaced says whether the owner has a namespace.
func (k Keys) OwnerOf(o metav1.Object, namespaced bool) (name Place, referred bool, label string) {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		name.Kind, name.Name = schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name
		if namespaced {
			name.Namespace = o.GetNamespace()
		}
		return name, true, ""
	}
	if label = o.GetLabels()[k.Label]; label != "" {
		name, _ = ParsePlace(o.GetAnnotations()[k.Owner])
	}
	return name, false, label
}

// IsOrphaned reports whether the annotation of an object says that it outlives its owner.
func (k Keys) IsOrphaned(live metav1.Object) bool {
	s, _ := ParseTitle(Annotation(live, k.Child))
	return s.OnDelete == dsl.OrphanChild
}

func applied(live metav1.Object, key string) bool {
	return strings.HasPrefix(Annotation(live, key), bookkeeping.AppliedMark)
}

// Annotation returns one annotation. It avoids the copy of all annotations that an unstructured object makes.
func Annotation(o metav1.Object, key string) string {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		text, _, _ := unstructured.NestedString(o.Object, "metadata", "annotations", key)
		return text
	case interface{ Annotation(key string) string }:
		return o.Annotation(key)
	}
	return o.GetAnnotations()[key]
}

// All returns the keys of all labels and annotations of the operator.
func (k Keys) All() []string { return []string{k.Applied, k.Child, k.Owner, k.Label, k.Inventory} }
