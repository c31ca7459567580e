// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

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

	"github.com/handwerk-dev/handwerk/dsl"
)

// Keys are the keys of what an operator writes onto children.
type Keys struct {
	// Applied is the annotation that tells what a child was applied from, Child the one that tells
	// which child it is, Owner the one that names its owner.
	Applied, Child, Owner string
	// Label is the label that children without an owner reference are found by.
	Label string
}

// KeysOf returns the keys of an operator.
func KeysOf(op *dsl.Operator) Keys {
	return Keys{Applied: op.AppliedAnnotation(), Child: op.ChildAnnotation(), Owner: op.OwnerAnnotation(), Label: op.OwnerLabel()}
}

// Title is the value of the child annotation, empty for a child without a name. Its parts may be
// any text; what would not parse back is escaped.
func Title(s dsl.ChildSpec) string {
	if s.Name == "" {
		return ""
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

// ParseTitle reads what Title wrote. Of the spec it fills in handler, name, key and policy of
// deletion, which is never left open.
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

// OwnerName is what the owner annotation says.
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
	parts := strings.Split(text, "/")
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return OwnerName{}, false
	}
	return OwnerName{schema.GroupKind{Group: parts[0], Kind: parts[1]}, parts[2], parts[3]}, true
}

// Retained is the value of the owner label of children that are retained for this owner: a digest,
// for a label is too short for a name.
func (n OwnerName) Retained() string {
	sum := sha256.Sum256([]byte(n.String()))
	return "name-" + hex.EncodeToString(sum[:10])
}

// people is the name for messages.
func (n OwnerName) people() string {
	if n.Namespace == "" {
		return n.Kind.Kind + " " + n.Name
	}
	return n.Kind.Kind + " " + n.Namespace + "/" + n.Name
}

// Owner is the object that children belong to.
type Owner struct {
	Object *unstructured.Unstructured
	// Namespaced says whether the owner has a namespace.
	Namespaced bool
	// Keys are those of the operator.
	Keys Keys
}

// Name names the owner.
func (o Owner) Name() OwnerName {
	return OwnerName{o.Object.GroupVersionKind().GroupKind(), o.Object.GetNamespace(), o.Object.GetName()}
}

// Has reports whether an object is a child of this owner: it is controlled by it, or has its label
// and was applied. A label alone is not enough, for controllers copy labels onto what they make.
func (o Owner) Has(live metav1.Object) bool {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == o.Object.GetUID()
	}
	return o.labels(live) && applied(live.GetAnnotations(), o.Keys.Applied)
}

// Forgets reports whether an object was applied for this owner without being tied to it.
func (o Owner) Forgets(live metav1.Object) bool {
	notes := live.GetAnnotations()
	return metav1.GetControllerOfNoCopy(live) == nil && live.GetLabels()[o.Keys.Label] == "" &&
		notes[o.Keys.Owner] == o.Name().String() && applied(notes, o.Keys.Applied)
}

// Spec tells how a child is kept, as far as it can be read from it; false when it has no name.
func (o Owner) Spec(live metav1.Object) (s dsl.ChildSpec, named bool) {
	s, named = ParseTitle(live.GetAnnotations()[o.Keys.Child])
	switch {
	case metav1.GetControllerOfNoCopy(live) != nil:
		s.Ownership = dsl.Owned
	case live.GetLabels()[o.Keys.Label] != "":
		s.Ownership = dsl.Labelled
	default:
		s.Ownership, s.OnDelete = dsl.Unowned, ""
	}
	return s, named
}

// labels reports whether an object has the owner's label.
func (o Owner) labels(live metav1.Object) bool {
	label := live.GetLabels()[o.Keys.Label]
	return label != "" && (label == string(o.Object.GetUID()) || label == o.Name().Retained())
}

// owned reports whether live may be applied to as it is, because it is this owner's, and whose it
// is otherwise; by is empty when it is nobody's.
func (o Owner) owned(live *unstructured.Unstructured) (ours bool, by string) {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == o.Object.GetUID(), ref.Kind + " " + ref.Name
	}
	if o.labels(live) || o.Forgets(live) {
		return true, ""
	}
	notes := live.GetAnnotations()
	name, known := ParseOwnerName(notes[o.Keys.Owner])
	switch label := live.GetLabels()[o.Keys.Label]; {
	case known && name == o.Name():
		return false, "an earlier " + name.people() // of another uid
	case known:
		return false, name.people()
	case label != "":
		return false, "the object with uid " + label
	}
	return false, stranger(notes, o.Keys)
}

// stranger names the owner by whom another operator of this kind holds an object, empty when none
// does.
func stranger(notes map[string]string, own Keys) string {
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		prefix, ends := strings.CutSuffix(key, "/owner")
		if name, known := ParseOwnerName(notes[key]); ends && known && key != own.Owner && applied(notes, prefix+"/applied") {
			return fmt.Sprintf("%s, for %s", name.people(), prefix)
		}
	}
	return ""
}

func applied(notes map[string]string, key string) bool {
	return strings.HasPrefix(notes[key], dsl.AppliedMark)
}
