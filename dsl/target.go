// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reach says which objects a handler may patch.
type Reach string

// The reaches. They matter for an object with a namespace: a cluster-scoped object may patch any object.
const (
	// ReachNamespace limits it to objects in the namespace of the handled object. The default.
	ReachNamespace Reach = "namespace"
	// ReachCluster allows objects in other namespaces, and cluster-scoped ones. Whoever may write the handled object
	// then chooses among all objects that the operator's account may patch, as far as the handler lets them.
	ReachCluster Reach = "cluster"
)

// Choices returns the reaches.
func (Reach) Choices() (what string, words []string) {
	return "reach", []string{string(ReachNamespace), string(ReachCluster)}
}

// TargetSpec says how [Targets.Patch] patches an object.
type TargetSpec struct {
	// Handler is the name under which the fields are owned: the handler's id, or the id, a dot and the name of a
	// step. Defaults to the id. Key distinguishes several targets of one name. There is one target for each Handler
	// and Key.
	Handler, Key string
	// Force takes fields that other field managers own. Without it, they are an error.
	Force bool
	// Reach defaults to ReachNamespace.
	Reach Reach
}

// Validate returns the fault of the spec, or nil.
func (s TargetSpec) Validate() error {
	switch s.Reach {
	case "", ReachNamespace, ReachCluster:
		return nil
	}
	return fmt.Errorf("%q is no reach (want %s or %s)", s.Reach, ReachNamespace, ReachCluster)
}

// Targets are objects that are no children of the handled object, and of which its handlers own some fields. It is safe
// for use by several goroutines at once.
type Targets interface {
	// Patch makes the object have some fields, by server-side apply with a field manager of its own for each owner,
	// handler and key. Fields has apiVersion, kind, metadata.name and the fields to own; the namespace defaults to the
	// handled object's. Fields that an earlier call set and that this one lacks are given back, and so is an earlier
	// target. Patch sends no request when the object has the fields and this manager owns them. The owner's inventory of
	// children lists the target before the first request, and the operator's finalizer is on the owner by then.
	//
	// Patch never creates an object: while it does not exist, the error is one of [Waiting]. It is a
	// [FieldConflictError] when others own a field with another value.
	Patch(ctx context.Context, fields any, spec TargetSpec) (*unstructured.Unstructured, error)
	// GiveBack gives back the fields of the target of a handler and key: those that no other field manager owns are
	// removed. An object that is gone is no error. The engine itself gives back all targets when the handled object is
	// deleted, and those of handlers that the operator has no more.
	GiveBack(ctx context.Context, handler, key string) error
	// Keys returns the keys under which a handler has targets, sorted.
	Keys(handler string) []string
}

// FieldConflict has fields that another field manager owns.
type FieldConflict struct {
	// Manager is the field manager, as in "kubectl-edit".
	Manager string
	// Fields are the paths, as in ".metadata.labels.zone", sorted.
	Fields []string
}

// FieldConflictError is the error of [Targets.Patch] when others own fields, with other values. The object stays as it
// is.
type FieldConflictError struct {
	// Kind, Namespace and Name identify the object.
	Kind, Namespace, Name string
	// Conflicts are sorted by manager.
	Conflicts []FieldConflict
}

// Error names the object, the fields and their managers.
func (e *FieldConflictError) Error() string {
	parts := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		verb := "belongs"
		if len(c.Fields) > 1 {
			verb = "belong"
		}
		parts[i] = fmt.Sprintf("%s %s to field manager %q", strings.Join(c.Fields, ", "), verb, c.Manager)
	}
	return fmt.Sprintf("patching %s %s: %s; force: true takes what others own", e.Kind, qualified(e.Namespace, e.Name), strings.Join(parts, "; "))
}

// PatchedKinds returns the kinds of the objects that handlers patch and that are no children, as far as they are known. All: no
// handler patches objects of other kinds. What a function in Go patches is not known, and neither is a kind that an expression gives.
func (r *Resource) PatchedKinds() (kinds []schema.GroupVersionKind, all bool) {
	all = true
	for _, h := range r.handlers {
		found := 0
		for _, n := range h.Needs {
			if len(h.Known.Patches) == 0 || !slices.Equal(n.Verbs, []string{"get", "patch"}) || n.Kind.Empty() {
				continue
			}
			if found++; !slices.Contains(kinds, n.Kind) {
				kinds = append(kinds, n.Kind)
			}
		}
		all = all && h.Known.Patches != nil && found >= len(h.Known.Patches)
	}
	return kinds, all
}
