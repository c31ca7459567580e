// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Owner is the object that children belong to.
type Owner struct {
	Object *unstructured.Unstructured
	// Namespaced says whether the owner has a namespace.
	Namespaced bool
	// Keys are those of the operator.
	Keys Keys
	// Record lists the owner's children that count only with it; nil when there is no record yet.
	Record *Record
	// Closed says that what was there before the record has been entered already.
	Closed bool
}

// Name names the owner.
func (o Owner) Name() Place {
	return Place{o.Object.GroupVersionKind().GroupKind(), o.Object.GetNamespace(), o.Object.GetName()}
}

// Enters reports whether a child in a namespace has to be in the owner's record.
func (o Owner) Enters(spec dsl.ChildSpec, namespace string) bool {
	return spec.ByLabel() || spec.ByReference() && !o.Name().Near(namespace)
}

// Has reports whether an object is a child of this owner: it is controlled by it and near to it, or says that it is one, was
// applied, and stands where the owner's record lists it. What an object says proves nothing: controllers copy labels onto what
// they make, and whoever may create an object may put any label and any reference on it.
func (o Owner) Has(live *unstructured.Unstructured) bool {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil && o.Name().Near(live.GetNamespace()) {
		return ref.UID == o.Object.GetUID()
	}
	return o.Says(live) && applied(live, o.Keys.Applied) && o.Record.Lists(PlaceOf(live))
}

// Says reports whether an object says that it is this owner's in a way that counts only with the record: by the label, or by a
// controller reference from a namespace to an owner that has none. A reference from one namespace to another is to nothing:
// Kubernetes looks for the owner in the namespace of the object that has the reference.
func (o Owner) Says(live metav1.Object) bool {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == o.Object.GetUID() && o.reaches(live) && !o.Name().Near(live.GetNamespace())
	}
	return o.Labels(live)
}

// reaches reports whether an object is where an owner reference to this owner can be.
func (o Owner) reaches(live metav1.Object) bool {
	return !o.Namespaced || live.GetNamespace() == o.Object.GetNamespace()
}

// Forgets reports whether an object was applied for this owner without being tied to it.
func (o Owner) Forgets(live metav1.Object) bool {
	return metav1.GetControllerOfNoCopy(live) == nil && live.GetLabels()[o.Keys.Label] == "" &&
		Annotation(live, o.Keys.Owner) == o.Name().String() && applied(live, o.Keys.Applied)
}

// Spec returns how a child is kept, as far as it can be read from it; false when it has no name. Which
// child it is, the record says where it lists it: the child may be in the hands of others.
func (o Owner) Spec(live *unstructured.Unstructured) (s dsl.ChildSpec, named bool) {
	s, named = ParseTitle(Annotation(live, o.Keys.Child))
	if entered, known := o.Record.Title(PlaceOf(live)); known && o.Says(live) {
		policy := s.OnDelete
		if s, named = ParseTitle(entered); policy != "" {
			s.OnDelete = policy
		}
	}
	switch {
	case metav1.GetControllerOfNoCopy(live) != nil:
		s.Ownership = dsl.Owned
	case live.GetLabels()[o.Keys.Label] == o.Name().Retained():
		s.Ownership, s.OnDelete = dsl.Labelled, dsl.RetainChild
	case live.GetLabels()[o.Keys.Label] != "":
		s.Ownership = dsl.Labelled
	default:
		s.Ownership, s.OnDelete = dsl.Unowned, ""
	}
	return s, named
}

// Needs reports whether the engine has to act on a child with this spec before its owner goes: Kubernetes would not delete it,
// or would delete it although it is to stay. Namespace is the child's.
func (o Owner) Needs(spec dsl.ChildSpec, namespace string) bool {
	return spec.Ownership != dsl.Unowned && spec.OnDelete != dsl.RetainChild && (spec.OnDelete == dsl.OrphanChild || o.Enters(spec, namespace) && !spec.ByReference())
}

// Lists reports whether the owner's record has to list an object that is there: by what it says, it is the owner's and counts only
// with the record, or is to be left behind.
func (o Owner) Lists(live metav1.Object) bool {
	return o.Labels(live) || o.Says(live) || o.Leaves(live)
}

// Leaves reports whether an object is controlled by this owner and near to it, and is to be left behind when the owner goes.
func (o Owner) Leaves(live metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID == o.Object.GetUID() && o.Name().Near(live.GetNamespace()) && o.Keys.Orphans(live)
}

// Labels reports whether an object has the owner's label, whoever put it there.
func (o Owner) Labels(live metav1.Object) bool {
	label := live.GetLabels()[o.Keys.Label]
	return label != "" && (label == string(o.Object.GetUID()) || label == o.Name().Retained())
}

// Marks are the values by which an index of owners finds what may be this owner's children: that of
// owner references and labels, and that of the label of what is retained.
func (o Owner) Marks() []string { return []string{string(o.Object.GetUID()), o.Name().Retained()} }

// Unlisted reports whether an object passes for a child of this owner and is not in its record.
func (o Owner) Unlisted(live *unstructured.Unstructured) bool {
	return o.Says(live) && applied(live, o.Keys.Applied) && !o.Record.Lists(PlaceOf(live))
}

// Owned reports whether live, which is where a child is wanted now, may be applied to as it is
// because it is this owner's, and whose it is otherwise; by is empty when it has no owner.
func (o Owner) Owned(live *unstructured.Unstructured) (ours bool, by string) {
	listed := o.Says(live) && o.Record.Lists(PlaceOf(live)) || o.Unlisted(live) && o.Record.missed(live, o.Closed)
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return listed || o.Has(live), ref.Kind + " " + ref.Name
	}
	if listed || o.Forgets(live) {
		return true, ""
	}
	name, known := ParsePlace(Annotation(live, o.Keys.Owner))
	switch label := live.GetLabels()[o.Keys.Label]; {
	case o.Labels(live):
		return false, "whoever put this object's label on it"
	case known && name == o.Name():
		return false, "an earlier " + name.People() // of another uid
	case known:
		return false, name.People()
	case label != "":
		return false, "the object with uid " + label
	}
	return false, stranger(live, o.Keys)
}

// Collected reports whether the garbage collector will take an object: its controller was the
// object that had the owner's name before.
func (o Owner) Collected(live metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	if ref == nil || ref.UID == o.Object.GetUID() || ref.Name != o.Object.GetName() || !o.reaches(live) {
		return false
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && o.Name().Kind == schema.GroupKind{Group: group.Group, Kind: ref.Kind}
}

// stranger names the owner by whom another operator of this kind holds an object, empty when none does.
func stranger(live *unstructured.Unstructured, own Keys) string {
	notes := live.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		prefix, ends := strings.CutSuffix(key, "/owner")
		if name, known := ParsePlace(notes[key]); ends && known && key != own.Owner && applied(live, prefix+"/applied") {
			return fmt.Sprintf("%s, for %s", name.People(), prefix)
		}
	}
	return ""
}

// Released returns the merge patch of metadata that takes this owner's tie away from the version that was looked at.
func (o Owner) Released(live *unstructured.Unstructured) map[string]any {
	patch := map[string]any{"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion()}
	refs, _, _ := unstructured.NestedSlice(live.Object, "metadata", "ownerReferences")
	var others []any
	for _, ref := range refs {
		if r, ok := ref.(map[string]any); !ok || r["uid"] != string(o.Object.GetUID()) {
			others = append(others, ref)
		}
	}
	switch {
	case len(others) == len(refs):
	case len(others) == 0:
		patch["ownerReferences"] = nil
	default:
		patch["ownerReferences"] = others
	}
	if _, found := live.GetLabels()[o.Keys.Label]; found {
		patch["labels"] = map[string]any{o.Keys.Label: nil}
	}
	notes := map[string]any{}
	for _, key := range []string{o.Keys.Applied, o.Keys.Child, o.Keys.Owner} {
		if _, found := live.GetAnnotations()[key]; found {
			notes[key] = nil
		}
	}
	if len(notes) > 0 {
		patch["annotations"] = notes
	}
	return patch
}
