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
	// Keys are the operator's keys.
	Keys Keys
	// Inventory lists the children that no owner reference proves; nil if there is no inventory yet.
	Inventory *Inventory
	// Closed is true if children from before the inventory have been entered already.
	Closed bool
}

// Name returns the place of the owner.
func (o Owner) Name() Place {
	return Place{o.Object.GroupVersionKind().GroupKind(), o.Object.GetNamespace(), o.Object.GetName()}
}

// NeedsEntry reports whether a child in a namespace has to be in the owner's inventory.
func (o Owner) NeedsEntry(spec dsl.ChildSpec, namespace string) bool {
	return spec.ByLabel() || spec.ByReference() && !o.Name().IsTrusted(namespace)
}

// Has reports whether an object is a child of this owner. Either the owner controls the object by a reference from near.
// Or the object claims to be a child, was applied, and has a place that the owner's inventory lists. A claim alone
// proves nothing: controllers copy labels onto their objects, and people who create an object may write any label and
// reference.
func (o Owner) Has(live *unstructured.Unstructured) bool {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil && o.Name().IsTrusted(live.GetNamespace()) {
		return ref.UID == o.Object.GetUID()
	}
	return o.ClaimsUnproven(live) && applied(live, o.Keys.Applied) && o.Inventory.Lists(PlaceOf(live))
}

// ClaimsUnproven reports whether an object claims this owner in a way that only counts with the inventory. That is a
// label, or a controller reference from a namespace to an owner that has none. A reference to another namespace refers
// to nothing: Kubernetes looks for the owner in the namespace of the object that has the reference.
func (o Owner) ClaimsUnproven(live metav1.Object) bool {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == o.Object.GetUID() && o.reaches(live) && !o.Name().IsTrusted(live.GetNamespace())
	}
	return o.Labels(live)
}

// reaches reports whether an object is in a place from which an owner reference to this owner is possible.
func (o Owner) reaches(live metav1.Object) bool {
	return !o.Namespaced || live.GetNamespace() == o.Object.GetNamespace()
}

// IsOrphan reports whether an object was applied for this owner without being tied to it.
func (o Owner) IsOrphan(live metav1.Object) bool {
	return metav1.GetControllerOfNoCopy(live) == nil && live.GetLabels()[o.Keys.Label] == "" &&
		Annotation(live, o.Keys.Owner) == o.Name().String() && applied(live, o.Keys.Applied)
}

// Spec returns the spec of a child, as far as its marks have it; false if the child has no name. If the inventory lists
// the child, the inventory says which child it is: others may write the child's marks.
func (o Owner) Spec(live *unstructured.Unstructured) (s dsl.ChildSpec, named bool) {
	s, named = ParseTitle(Annotation(live, o.Keys.Child))
	if entered, known := o.Inventory.Title(PlaceOf(live)); known && o.ClaimsUnproven(live) {
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

// NeedsFinalizer reports whether the engine has to act on a child with this spec before its owner goes. Kubernetes
// would not delete the child, or would delete it although it has to stay. Namespace is the child's.
func (o Owner) NeedsFinalizer(spec dsl.ChildSpec, namespace string) bool {
	return spec.Ownership != dsl.Unowned && spec.OnDelete != dsl.RetainChild && (spec.OnDelete == dsl.OrphanChild || o.NeedsEntry(spec, namespace) && !spec.ByReference())
}

// Lists reports whether the owner's inventory has to list a live object. The object claims this owner in a way that
// only counts with the inventory, or it outlives the owner.
func (o Owner) Lists(live metav1.Object) bool {
	return o.Labels(live) || o.ClaimsUnproven(live) || o.Leaves(live)
}

// Leaves reports whether this owner controls an object by a reference from near, and the object outlives the owner.
func (o Owner) Leaves(live metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID == o.Object.GetUID() && o.Name().IsTrusted(live.GetNamespace()) && o.Keys.IsOrphaned(live)
}

// Labels reports whether an object has the owner's label, whoever put it there.
func (o Owner) Labels(live metav1.Object) bool {
	label := live.GetLabels()[o.Keys.Label]
	return label != "" && (label == string(o.Object.GetUID()) || label == o.Name().Retained())
}

// IndexValues returns the values by which an index of owners finds possible children of this owner. One is for owner
// references and labels, the other for the label of retained children.
func (o Owner) IndexValues() []string {
	return []string{string(o.Object.GetUID()), o.Name().Retained()}
}

// Unlisted reports whether an object looks like a child of this owner and is not in its inventory.
func (o Owner) Unlisted(live *unstructured.Unstructured) bool {
	return o.ClaimsUnproven(live) && applied(live, o.Keys.Applied) && !o.Inventory.Lists(PlaceOf(live))
}

// Owned reports whether live, which has the place of a wanted child, is this owner's and may be applied to. Otherwise by
// is its owner; empty if it has none.
func (o Owner) Owned(live *unstructured.Unstructured) (ours bool, by string) {
	listed := o.ClaimsUnproven(live) && o.Inventory.Lists(PlaceOf(live)) || o.Unlisted(live) && o.Inventory.missed(live, o.Closed)
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return listed || o.Has(live), ref.Kind + " " + ref.Name
	}
	if listed || o.IsOrphan(live) {
		return true, ""
	}
	name, known := ParsePlace(Annotation(live, o.Keys.Owner))
	switch label := live.GetLabels()[o.Keys.Label]; {
	case o.Labels(live):
		return false, "whoever put this object's label on it"
	case known && name == o.Name():
		return false, "an earlier " + name.Describe() // of another uid
	case known:
		return false, name.Describe()
	case label != "":
		return false, "the object with uid " + label
	}
	return false, stranger(live, o.Keys)
}

// IsGarbage reports whether the garbage collector will delete an object: its controller was an earlier object of the
// owner's name.
func (o Owner) IsGarbage(live metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	if ref == nil || ref.UID == o.Object.GetUID() || ref.Name != o.Object.GetName() || !o.reaches(live) {
		return false
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && o.Name().Kind == schema.GroupKind{Group: group.Group, Kind: ref.Kind}
}

// stranger names the owner for whom another operator of this kind keeps an object; empty if there is none.
func stranger(live *unstructured.Unstructured, own Keys) string {
	notes := live.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		prefix, ends := strings.CutSuffix(key, "/owner")
		if name, known := ParsePlace(notes[key]); ends && known && key != own.Owner && applied(live, prefix+"/applied") {
			return fmt.Sprintf("%s, for %s", name.Describe(), prefix)
		}
	}
	return ""
}

// Released returns the merge patch of metadata that removes this owner's ties from the version that was read.
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
