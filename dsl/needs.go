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

// self is, where a need names a resource, the resource that the handler belongs to.
const self = "self"

// Need is what a handler's code does with one resource, so that the operator's account can be
// allowed it: `operator rbac` makes roles of needs. Nothing else hangs on it. What the engine does of
// its own, such as watching, is known and is no need.
type Need struct {
	// Verbs are those of RBAC, as in "get" and "create". At least one.
	Verbs []string
	// Resource, Kind, Child and Relation say what it is about; at most one is set. Without any, it is
	// the resource that the handler belongs to.
	Resource ResourceName
	// Kind stands for the resource of that kind.
	Kind schema.GroupVersionKind
	// Child stands for the kind of the resource's named child, Relation for the resource of its
	// relation.
	Child, Relation string
	// Subresource is one of the resource, as in "status". Optional.
	Subresource string
	// Names are the only objects that it is about. Empty means any. They say nothing for create, list
	// and watch, which Kubernetes does not allow by name.
	Names []string
	// Offered: it is no more than the conditions of [Patch.OfferCondition], which built-in kinds do not
	// get.
	Offered bool
	// Namespace is where the objects are. Empty means the namespaces that the operator works in.
	Namespace string
	// For is the kind of an object, where the right is needed to write such objects: to write a RoleBinding takes "bind" on
	// its role, and to write a Role takes the rights in its rules. The right counts in the namespaces of these objects then, or
	// in the whole cluster where they have none, whatever the resource is. Optional.
	For schema.GroupVersionKind
	// Why is what the right is needed for, for people. Empty means the handler's action.
	Why string
}

// ParseNeed reads verbs with commas between them, as in "get,create", and a resource in kubectl's
// spelling, with a subresource behind a slash, as in "deployments.apps/scale". The resource "self" is
// the one that the handler belongs to.
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

// MustParseNeed is [ParseNeed] for constants; it panics where they are faulty.
func MustParseNeed(verbs, resource string) Need {
	n, err := ParseNeed(verbs, resource)
	if err != nil {
		panic("dsl: " + err.Error())
	}
	return n
}

// checkVerb reports a verb that is none, or that was most likely meant to be another one. API servers
// may know verbs of their own, so one that is like no other is taken as it is.
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

// Text is the resource as [ParseNeed] reads it; for what is said in another way, words for people.
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

// Needs declares what the handler's code does with a resource beside what the engine does, in the
// form of [ParseNeed]: Needs("get,create,patch", "deployments.apps") for what it applies as children,
// Needs("patch", "self/status") for what it sets in the status by Request.Patch, Needs("patch", "self") for children that are
// [Labelled], [OrphanChild] or [RetainChild]: the engine writes their owner. See [Need].
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

// WithNeeds is [Needs] for needs that are at hand. Without any, it says that the code needs nothing
// beside what the engine does.
func WithNeeds(needs ...Need) Option {
	return func(h *Handler) {
		h.Declared = true
		h.Needs = append(h.Needs, needs...)
	}
}
