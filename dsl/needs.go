// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// self stands in a need for the resource that the handler belongs to.
const self = "self"

// Need is a right on one resource that a handler's code needs. `operator rbac` makes roles of needs; they have no
// other effect. Do not declare rights that the engine itself needs, as for watching: they are known.
type Need struct {
	// Verbs are verbs of RBAC, as in "get" and "create". At least one is required.
	Verbs []string
	// Resource, Kind, Child and Relation say to which resource the right applies; at most one is set. By default it
	// is the resource that the handler belongs to.
	Resource ResourceName
	// Kind stands for the resource of that kind.
	Kind schema.GroupVersionKind
	// Child stands for the kind of a named child of the resource, Relation for the resource of a relation.
	Child, Relation string
	// Subresource is a subresource, as in "status". Optional.
	Subresource string
	// Names limit the right to objects of these names. Empty means all. They have no effect for create, list and
	// watch, which Kubernetes cannot limit by name.
	Names []string
	// Offered: the right is only for conditions of [Patch.OfferCondition], which neither built-in kinds get nor objects of
	// which the cache holds metadata alone.
	Offered bool
	// Namespace is the namespace of the objects. Empty means the namespaces that the operator works in.
	Namespace string
	// For is a kind of objects that the right is needed to write. For example, writing a RoleBinding needs "bind"
	// on its role, and writing a Role needs the rights in its rules. The right is then needed in the namespaces of
	// these objects, or in the whole cluster if they are cluster-scoped, whatever the resource is. Optional.
	For schema.GroupVersionKind
	// Why says for people what the right is needed for. Empty means the handler's action.
	Why string
}

// ParseNeed reads a need. Verbs are separated by commas, as in "get,create". The resource is named as in kubectl,
// with a subresource behind a slash, as in "deployments.apps/scale". The resource "self" is the one that the
// handler belongs to.
func ParseNeed(verbs, resource string) (Need, error) {
	of, subresource, found := strings.Cut(resource, "/")
	n := Need{Subresource: subresource}
	if wrong := validation.IsDNS1035Label(subresource); found && len(wrong) > 0 {
		return n, fmt.Errorf("reading resource %q: %q is no subresource (want one as in deployments.apps/scale)", resource, subresource)
	}
	if of != self {
		var err error
		if n.Resource, err = ParseResourceName(of); err != nil {
			return n, err
		}
	}
	for verb := range strings.SplitSeq(verbs, ",") {
		if err := checkVerb(strings.TrimSpace(verb)); err != nil {
			return n, fmt.Errorf("reading need of %s: %w", resource, err)
		}
		n.Verbs = append(n.Verbs, strings.TrimSpace(verb))
	}
	return n, nil
}

// MustParseNeed is [ParseNeed] for constants; it panics on a fault.
func MustParseNeed(verbs, resource string) Need {
	n, err := ParseNeed(verbs, resource)
	if err != nil {
		panic("dsl: " + err.Error())
	}
	return n
}

// checkVerb reports an invalid verb, or one that is probably mistyped. API servers may have verbs of their own, so
// a verb that is not similar to a known one is accepted.
func checkVerb(verb string) error {
	known := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "approve", "use", "*"}
	if slices.Contains(known, verb) {
		return nil
	}
	if meant, near := words.Nearest(verb, known); near {
		return fmt.Errorf("unknown verb %q (did you mean %q?)", verb, meant)
	}
	if verb == "" || strings.ToLower(verb) != verb || strings.ContainsAny(verb, " /") {
		return fmt.Errorf("%q is no verb (want get, list, watch, create, update, patch, delete or the like)", verb)
	}
	return nil
}

// Text returns the resource in the form of [ParseNeed], or a description for needs that have no such form.
func (n Need) Text() string {
	out := n.Resource.String()
	switch {
	case !n.Kind.Empty():
		out = n.Kind.Kind + " of " + n.Kind.GroupVersion().String()
	case n.Child != "":
		out = "children." + n.Child
	case n.Relation != "":
		out = "related." + n.Relation
	case out == "":
		out = self
	}
	if n.Subresource != "" {
		out += "/" + n.Subresource
	}
	return out
}

// Needs declares rights that the handler's code needs beyond the engine's own, in the form of [ParseNeed].
// Examples: Needs("get,create,patch", "deployments.apps") for children that it applies, Needs("patch",
// "self/status") for status that it sets by Request.Patch, Needs("patch", "self") for children that are [Labelled],
// [OrphanChild] or [RetainChild], because the engine writes their owner. See [Need].
func Needs(verbs, resource string) Option {
	return func(h *Handler) {
		n, err := ParseNeed(verbs, resource)
		if err != nil {
			h.invalid = append(h.invalid, Fault{Place: Place{Field: "needs"}, Err: err})
			return
		}
		WithNeeds(n)(h)
	}
}

// WithNeeds adds needs. Without arguments, it declares that the code needs no rights beyond the engine's own.
func WithNeeds(needs ...Need) Option {
	return func(h *Handler) {
		h.Declared = true
		h.Needs = append(h.Needs, needs...)
	}
}
