// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds looks up kinds and resources by name, and finds the one that a wrong name probably means. It is
// pure.
package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Kind is a kind that an API server serves.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural, as in URLs. Short are kubectl's short names.
	Resource string
	Short    []string `json:",omitempty"`
	// Namespaced: its objects are namespaced.
	Namespaced bool `json:",omitempty"`
	// Watched: it can be listed and watched.
	Watched bool `json:",omitempty"`
}

// HasName reports whether kubectl takes a name without a group for the kind: its plural, its singular, a short name or the
// kind itself.
func (k Kind) HasName(name string) bool {
	return name == k.Resource || name == k.Kind || name == strings.ToLower(k.Kind) || slices.Contains(k.Short, name)
}

// List has the known kinds. It is read-only.
type List struct {
	// Kinds are in the order of preference; those of a group are adjacent.
	Kinds []Kind
	// Own reports whether a group is built in, so that no kinds can be added to it.
	Own func(group string) bool
	// Unsure reports whether a group is only partly known.
	Unsure func(group string) bool
	// Where names the source of the kinds, as in "Kubernetes 1.37".
	Where string
	// Final: the kinds are those of the target cluster. Otherwise a newer Kubernetes may have other versions, and
	// CRDs may add other kinds.
	Final bool
}

var _ shape.Kinds = (*List)(nil)

// Kind looks up the kind of an object. The error is a *shape.Misfit for the object; nil if there is no objection.
func (l *List) Kind(wanted schema.GroupVersionKind) (shape.Kind, error) {
	i := slices.IndexFunc(l.Kinds, func(k Kind) bool { return k.GroupVersionKind == wanted })
	if i >= 0 {
		return l.known(l.Kinds[i]), nil
	}
	q := question{List: l, gv: wanted.GroupVersion(), name: wanted.Kind, what: "kind", at: "kind",
		is: func(k Kind, name string) bool { return k.Kind == name }, called: func(k Kind) string { return k.Kind }}
	return shape.Kind{}, q.fault()
}

// Resource looks up a resource, which must be watchable if watched is set. Without a version, any version is
// accepted. The error is a *shape.Misfit without a path.
func (l *List) Resource(wanted schema.GroupVersionResource, watched bool) (shape.Kind, error) {
	i := slices.IndexFunc(l.Kinds, func(k Kind) bool {
		return k.Resource == wanted.Resource && k.Group == wanted.Group && (wanted.Version == "" || k.Version == wanted.Version)
	})
	switch {
	case i >= 0 && (l.Kinds[i].Watched || !watched):
		return l.known(l.Kinds[i]), nil
	case i >= 0:
		return shape.Kind{}, misfit("", false, "%s cannot be listed and watched", l.Kinds[i].Resource)
	}
	q := question{List: l, gv: wanted.GroupVersion(), name: wanted.Resource, what: "resource", is: Kind.HasName,
		called: func(k Kind) string { return k.Resource }}
	return shape.Kind{}, q.fault()
}

// Named returns the first kind with a name in a group; see [Kind.HasName]. Without a group and a version any group has
// it.
func (l *List) Named(name string, gv schema.GroupVersion) (Kind, bool) {
	i := slices.IndexFunc(l.Kinds, func(k Kind) bool {
		return (gv.Empty() || k.Group == gv.Group) && k.HasName(name)
	})
	if i < 0 {
		return Kind{}, false
	}
	return l.Kinds[i], true
}

// With returns a list with the kinds of CRDs, in their JSON form, before its own.
func (l *List) With(crds ...map[string]any) *List {
	out := *l
	out.Kinds = nil
	for _, crd := range crds {
		o := unstructured.Unstructured{Object: crd}
		text := func(path ...string) string {
			found, _, _ := unstructured.NestedString(o.Object, path...)
			return found
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _ := fields["name"].(string)
			gv := schema.GroupVersion{Group: text("spec", "group"), Version: name}
			out.Kinds = append(out.Kinds, Kind{
				GroupVersionKind: gv.WithKind(text("spec", "names", "kind")), Resource: text("spec", "names", "plural"),
				Namespaced: text("spec", "scope") == "Namespaced", Watched: true,
			})
		}
	}
	out.Kinds = append(out.Kinds, l.Kinds...)
	return &out
}

// known converts a kind for callers.
func (l *List) known(k Kind) shape.Kind {
	return shape.Kind{GroupVersionKind: k.GroupVersionKind, Namespaced: k.Namespaced, Own: l.Own(k.Group)}
}
