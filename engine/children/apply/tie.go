// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// Keys are the keys of what an operator writes onto children.
type Keys struct {
	// Applied is the annotation that tells what a child was applied from, Child the one that tells
	// which child it is, Owner the one that names its owner.
	Applied, Child, Owner string
	// Label is the label that children without an owner reference are found by.
	Label string
	// Record is the annotation of the owner that lists its labelled children.
	Record string
}

// KeysOf returns the keys of an operator.
func KeysOf(op *dsl.Operator) Keys {
	return Keys{
		Applied: op.AppliedAnnotation(), Child: op.ChildAnnotation(), Owner: op.OwnerAnnotation(), Label: op.OwnerLabel(),
		Record: op.ChildrenAnnotation(),
	}
}

// Title is the value of the child annotation, empty for a child without a name that is to be deleted. Its parts may be
// any text; what would not parse back is escaped.
func Title(s dsl.ChildSpec) string {
	if s.Name == "" && s.OnDelete != dsl.OrphanChild {
		return "" // the label says that it is retained
	}
	text := url.PathEscape(s.Handler) + "/" + url.PathEscape(s.Name)
	if s.Key != "" {
		text += "/" + url.PathEscape(s.Key)
	}
	if s.OnDelete != "" && s.OnDelete != dsl.DeleteChild {
		text += ";" + string(s.OnDelete)
	}
	return text
}

// Note is the value of the child annotation for a child without a title: it names the handler that made it.
func Note(s dsl.ChildSpec, handler string) string {
	if Title(s) != "" {
		return "" // the desired object has the title
	}
	return url.PathEscape(handler) + "/"
}

// Maker returns which handler, or step of one, an object says it was made by; empty when it does not say.
func (k Keys) Maker(live metav1.Object) string {
	s, _ := ParseTitle(note(live, k.Child))
	return s.Handler
}

// Made reports whether an object says that the operator has applied it.
func (k Keys) Made(live metav1.Object) bool { return applied(live, k.Applied) }

// Which is the title without the policy: which child it is, as the owner's record has it.
func Which(s dsl.ChildSpec) string {
	s.OnDelete = ""
	return Title(s)
}

// ParseTitle reads what Title wrote, and of what Note wrote the handler. Of the spec it fills in handler, name,
// key and policy of deletion, which is never left open. It is ok where there is a name.
func ParseTitle(text string) (s dsl.ChildSpec, ok bool) {
	path, policy, found := strings.Cut(text, ";")
	s.OnDelete = dsl.DeleteChild
	if found {
		s.OnDelete = dsl.DeletePolicy(policy)
	}
	parts := strings.Split(path, "/")
	if len(parts) != 2 && len(parts) != 3 || s.OnDelete == "" || s.Validate() != nil {
		return dsl.ChildSpec{}, false
	}
	for i, into := range []*string{&s.Handler, &s.Name, &s.Key}[:len(parts)] {
		var err error
		if *into, err = url.PathUnescape(parts[i]); err != nil {
			return dsl.ChildSpec{}, false
		}
	}
	return s, s.Name != ""
}

// OwnerName names an object by its kind, namespace and name, as the owner annotation does.
type OwnerName struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String writes the name as the annotation has it.
func (n OwnerName) String() string {
	return n.Kind.Group + "/" + n.Kind.Kind + "/" + n.Namespace + "/" + n.Name
}

// ParseOwnerName reads what String wrote.
func ParseOwnerName(text string) (n OwnerName, ok bool) {
	group, rest, _ := strings.Cut(text, "/")
	kind, rest, _ := strings.Cut(rest, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return OwnerName{}, false
	}
	return OwnerName{schema.GroupKind{Group: group, Kind: kind}, namespace, name}, true
}

// OwnerOf names the owner that an object says it has: by a reference to its controller, or else by the label and an
// annotation. Namespaced says whether the owner has a namespace.
func (k Keys) OwnerOf(o metav1.Object, namespaced bool) (name OwnerName, referred bool, label string) {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		name.Kind, name.Name = schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name
		if namespaced {
			name.Namespace = o.GetNamespace()
		}
		return name, true, ""
	}
	if label = o.GetLabels()[k.Label]; label != "" {
		name, _ = ParseOwnerName(o.GetAnnotations()[k.Owner])
	}
	return name, false, label
}

// Retained is the value of the owner label of children that are retained for this owner: a digest,
// for a label is too short for a name.
func (n OwnerName) Retained() string {
	sum := sha256.Sum256([]byte(n.String()))
	return "name-" + hex.EncodeToString(sum[:10])
}

// People names the object in messages, as in "Deployment shop/web".
func (n OwnerName) People() string {
	return n.Kind.Kind + " " + cache.ObjectName{Namespace: n.Namespace, Name: n.Name}.String()
}

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
func (o Owner) Name() OwnerName {
	return OwnerName{o.Object.GroupVersionKind().GroupKind(), o.Object.GetNamespace(), o.Object.GetName()}
}

// Near reports whether a controller reference from a namespace counts by itself, because who may write there is near to the
// owner as it is: the owner's own namespace, for a Namespace the one that it is, none for an owner without a namespace.
func (n OwnerName) Near(namespace string) bool {
	isNamespace := n.Kind == schema.GroupKind{Kind: "Namespace"} && n.Namespace == ""
	return n.Namespace == namespace || isNamespace && n.Name == namespace
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
		note(live, o.Keys.Owner) == o.Name().String() && applied(live, o.Keys.Applied)
}

// Spec tells how a child is kept, as far as it can be read from it; false when it has no name. Which
// child it is, the record says where it lists it: the child may be in the hands of others.
func (o Owner) Spec(live *unstructured.Unstructured) (s dsl.ChildSpec, named bool) {
	s, named = ParseTitle(note(live, o.Keys.Child))
	if entered, told := o.Record.Title(PlaceOf(live)); told && o.Says(live) {
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

// Orphans reports whether an object says that it is to be left behind when its owner goes.
func (k Keys) Orphans(live metav1.Object) bool {
	s, _ := ParseTitle(note(live, k.Child))
	return s.OnDelete == dsl.OrphanChild
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

// owned reports whether live, which is where a child is wanted now, may be applied to as it is
// because it is this owner's, and whose it is otherwise; by is empty when it is nobody's.
func (o Owner) owned(live *unstructured.Unstructured) (ours bool, by string) {
	listed := o.Says(live) && o.Record.Lists(PlaceOf(live)) || o.Unlisted(live) && o.Record.missed(live, o.Closed)
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return listed || o.Has(live), ref.Kind + " " + ref.Name
	}
	if listed || o.Forgets(live) {
		return true, ""
	}
	name, known := ParseOwnerName(note(live, o.Keys.Owner))
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

// collected reports whether the garbage collector will take an object: its controller was the
// object that had the owner's name before.
func (o Owner) collected(live metav1.Object) bool {
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
		if name, known := ParseOwnerName(notes[key]); ends && known && key != own.Owner && applied(live, prefix+"/applied") {
			return fmt.Sprintf("%s, for %s", name.People(), prefix)
		}
	}
	return ""
}

func applied(live metav1.Object, key string) bool {
	return strings.HasPrefix(note(live, key), bookkeeping.AppliedMark)
}

// note is one annotation. Whoever asks an unstructured object for all of them gets a copy.
func note(o metav1.Object, key string) string {
	if u, is := o.(*unstructured.Unstructured); is {
		text, _, _ := unstructured.NestedString(u.Object, "metadata", "annotations", key)
		return text
	}
	return o.GetAnnotations()[key]
}
