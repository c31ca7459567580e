// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Place identifies an object by its kind, namespace and name, as the owner annotation and the inventory do.
type Place struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String returns the place in the form of the annotation.
func (p Place) String() string {
	return p.Kind.Group + "/" + p.Kind.Kind + "/" + p.Namespace + "/" + p.Name
}

// ParsePlace parses the form that String returns.
func ParsePlace(text string) (p Place, ok bool) {
	group, rest, _ := strings.Cut(text, "/")
	kind, rest, _ := strings.Cut(rest, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return Place{}, false
	}
	return Place{schema.GroupKind{Group: group, Kind: kind}, namespace, name}, true
}

// Retained returns the value of the owner label of children that are retained for this owner. It is a digest, because a
// name may be too long for a label.
func (p Place) Retained() string {
	sum := sha256.Sum256([]byte(p.String()))
	return "name-" + hex.EncodeToString(sum[:10])
}

// Describe returns the name of the object for messages, as in "Deployment shop/web".
func (p Place) Describe() string {
	if p.Namespace == "" {
		return p.Kind.Kind + " " + p.Name
	}
	return p.Kind.Kind + " " + p.Namespace + "/" + p.Name
}

// IsTrusted reports whether a controller reference from a namespace counts by itself, because only people who are trusted
// with the owner may write there. That is the owner's own namespace or, for a Namespace, the namespace that it is. Other
// cluster-scoped owners have none.
func (p Place) IsTrusted(namespace string) bool {
	isNamespace := p.Kind == schema.GroupKind{Kind: "Namespace"} && p.Namespace == ""
	return p.Namespace == namespace || isNamespace && p.Name == namespace
}

// PlaceOf returns the place of an object.
func PlaceOf(o *unstructured.Unstructured) Place {
	return Place{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}
