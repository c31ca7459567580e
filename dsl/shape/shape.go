// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package shape describes what is known of the values of expressions, so that a configuration can be checked before
// it runs. Package dsl/expr/check does that. It is pure.
package shape

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Check checks a part of a configuration against schemas and returns faults. It may be called again whenever
// schemas change.
type Check func(Schemas) []error

// Shape is what is known of a value.
type Shape struct {
	// Schema is the OpenAPI schema of an object. Nil means unknown, and fits everything.
	Schema *spec.Schema
	// List: the value is a list of such objects.
	List bool
	// Value: the value need not be an object; the schema is that of any value.
	Value bool
	// Kept says which parts of an object exist; nil means all.
	Kept *Kept
}

// Kept says which parts of objects a cache holds, or a handler sees, besides their metadata.
type Kept struct {
	// Fields are the paths that are held.
	Fields [][]string
	// Reader is the id of the handler that sees no more than these fields, by what it says that it reads; empty if it
	// is the cache that holds no more.
	Reader string
	// Missed, when set, is called for a field that code reads and that is left out.
	Missed func(field []string)
	// At is the place in a configuration that limits the cache; empty if it is not known.
	At string
	// Metadata: only metadata is held.
	Metadata bool
}

// Lacks reports whether the value at a path is left out. Part means that some of it is held.
func (k *Kept) Lacks(path []string) (lacks, part bool) {
	if len(path) > 0 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0]) {
		return false, false
	}
	for _, field := range k.Fields {
		n := min(len(field), len(path))
		switch same := slices.Equal(field[:n], path[:n]); {
		case same && n == len(field):
			return false, false
		case same:
			part = true
		}
	}
	return true, part
}

// Leaves is the message that something is left out, with advice.
func (k *Kept) Leaves(what string) string {
	if k.Metadata {
		return fmt.Sprintf("%s does not hold %s: take cache compact, with keep", k, what)
	}
	if k.Reader != "" {
		return fmt.Sprintf("handler %s does not say that it reads %s: add %[2]s to its Reads", k.Reader, what)
	}
	return fmt.Sprintf("%s leaves %s out of the cache: add %[2]s to it", k, what)
}

// String names the setting that leaves something out, with its place.
func (k *Kept) String() string {
	if k.At == "" {
		return k.Word()
	}
	return k.Word() + " (at " + k.At + ")"
}

// Word is the setting that leaves something out.
func (k *Kept) Word() string {
	switch {
	case k.Metadata:
		return "cache metadata"
	case k.Reader != "":
		return "Reads of handler " + k.Reader
	}
	return "keep"
}

// Kinds looks up kinds. Its errors are of type [Misfit].
type Kinds interface {
	// Kind looks up the kind of an object. The path of the misfit begins at the object.
	Kind(schema.GroupVersionKind) (Kind, error)
	// Resource looks up a resource, which must be watchable if watched is set. Without a version, any version is
	// accepted.
	Resource(r schema.GroupVersionResource, watched bool) (Kind, error)
}

// Kind is what is known of a kind. The zero value is unknown.
type Kind struct {
	schema.GroupVersionKind
	// Namespaced: its objects are namespaced.
	Namespaced bool
	// Own: it is a built-in kind.
	Own bool
}

// Schemas are the shapes of the variables of a resource's expressions.
type Schemas struct {
	// Self is the resource's own object.
	Self Shape
	// Alone: old and diff have only the handler's field. Named: expressions for whole objects use only their names.
	Alone, Named bool
	// Children and Related have all names, with or without a schema.
	Children, Related map[string]Shape
	// Current has the children of an apply as they are before it; nil elsewhere. Those of a list are in a map by their keys.
	Current map[string]Shape
	// Indexes have the shape of the values under a key, for each index of the operator by name.
	Indexes map[string]Shape
	// Handlers are the ids of the handlers whose outcomes expressions can read; nil if they are not known.
	Handlers []string
	// Vars are the shapes of additional variables that are objects or lists of objects. Others may have any value.
	Vars map[string]Shape
	// Kinds looks up kinds; nil if they are not known. OfKind returns the schema of a kind, or nil; it may itself be nil.
	Kinds  Kinds
	OfKind func(schema.GroupVersionKind) *spec.Schema
	// Kind is the kind of the resource's own object, as far as it is known.
	Kind Kind
	// Sure are the paths in the object that are known to exist, as self.spec.tls. Unset: missing values are
	// handled, so paths need not be known to exist. UnsetStatus: those of the status are.
	Sure               []string
	Unset, UnsetStatus bool
	// Params are the names of the handler's parameters; nil if they are not known.
	Params map[string]bool
	// Without are the variables that do not exist here, with the reason.
	Without map[string]string
}

// With returns the schemas with one more variable.
func (s Schemas) With(name string, of Shape) Schemas {
	vars := map[string]Shape{name: of}
	for other, shape := range s.Vars {
		if other != name {
			vars[other] = shape
		}
	}
	s.Vars = vars
	return s
}

// NamedChild is a named child that a handler makes.
type NamedChild struct {
	// Name is unique within the resource. It must be a CEL identifier.
	Name string
	// Kind is empty if it is computed when the handler runs.
	Kind schema.GroupVersionKind
	// List: there may be several, which have keys.
	List bool
	// Object identifies the object, by its template with all expressions: two children with the same Object are the
	// same object. It is empty if that is not known, or if the child is not always made.
	Object string
	// Maker is the name under which the child is made, one of Makers of its handler. Needs are the names of
	// children of the same handler that must exist before it.
	Maker string
	Needs []string
	// Judged: its maker decides when it is ready, and waits for that.
	Judged bool
	// Forgotten: its maker applies it, and nobody watches it. It is only known to the reconcile that has just applied it.
	Forgotten bool
	// Sets are the fields that the template sets, as paths of keys: a field whose value or key is computed counts whole. An
	// empty path is the whole object. Nil means that they are not known.
	Sets [][]string
	// Strict: fields that others set beside those of the template are taken away, but for those of the control plane and
	// of the field managers in Allow.
	Strict bool
	Allow  []string
}

// Misfit is an error with its place within an action's configuration.
type Misfit struct {
	// Path is the path of the faulty value below the handler, as in {"with", "channel"}. An index of a list is a
	// number.
	Path []string
	// Line and Column, both from 1, are the place within a text; zero means its beginning. Columns count
	// characters.
	Line, Column int
	// Key: the fault is in the key of the value.
	Key bool
	// Message describes the fault.
	Message string
	// Warning: the fault is uncertain.
	Warning bool
}

// Warns reports whether the fault is uncertain.
func (e *Misfit) Warns() bool { return e.Warning }

// IsWarning reports whether an error of a [Check] is only a warning.
func IsWarning(err error) bool {
	found, is := errors.AsType[interface {
		error
		Warns() bool
	}](err)
	return is && found.Warns()
}

// Error returns the message.
func (e *Misfit) Error() string { return e.Message }
