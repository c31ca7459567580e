// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package shape says what is known of the values that expressions see, so that a configuration can be
// checked before it runs. Package dsl/expr/check does that.
// It is pure.
package shape

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Check holds a part of a configuration against schemas and returns what does not fit. It may be
// called any number of times, as schemas come and change.
type Check func(Schemas) []error

// Shape is what is known of a value.
type Shape struct {
	// Schema is the OpenAPI schema of an object; nil when it is not known, and then anything fits.
	Schema *spec.Schema
	// List says that the value is a list of such objects.
	List bool
	// Value says that the value need be no object: the schema is that of any value.
	Value bool
	// Kept is what there is of an object; nil for all of it.
	Kept *Kept
}

// Kept is what a cache holds of objects beside their metadata.
type Kept struct {
	// Fields are paths.
	Fields [][]string
	// At is where a configuration says so; empty when that is not known.
	At string
	// Metadata: it holds nothing else.
	Metadata bool
}

// Lacks reports whether a path leads to something that is left out. Part: some of it is there.
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

// Leaves says that something is left out, and what to do about it.
func (k *Kept) Leaves(what string) string {
	if k.Metadata {
		return fmt.Sprintf("%s does not hold %s", k, what)
	}
	return fmt.Sprintf("%s leaves %s out of the cache: add %[2]s to it", k, what)
}

// String is what leaves something out.
func (k *Kept) String() string {
	if k.At == "" {
		return k.Word()
	}
	return k.Word() + " (at " + k.At + ")"
}

// Word is the setting that leaves something out.
func (k *Kept) Word() string {
	if k.Metadata {
		return "cache metadata"
	}
	return "keep"
}

// Kinds knows which kinds there are. What it has to say against one is a [Misfit].
type Kinds interface {
	// Kind looks for the kind of an object. The path of the misfit begins in the object.
	Kind(schema.GroupVersionKind) (Kind, error)
	// Resource looks for a resource, that is to be watched or not. Without a version any will do.
	Resource(r schema.GroupVersionResource, watched bool) (Kind, error)
}

// Kind is what is known of a kind; nothing when it is empty.
type Kind struct {
	schema.GroupVersionKind
	// Namespaced: its objects live in namespaces.
	Namespaced bool
	// Own: it is one of Kubernetes' own.
	Own bool
}

// Schemas are the shapes of the variables of a resource's expressions.
type Schemas struct {
	// Self is the resource's own object.
	Self Shape
	// Alone: nothing but the field that a handler names is in old and diff. Named: of a whole object no more is read than
	// what it is called.
	Alone, Named bool
	// Children and Related have every name that there is, with or without a schema.
	Children, Related map[string]Shape
	// Indexes have what is under a key of each of the operator's indexes, by their names.
	Indexes map[string]Shape
	// Vars are those of further variables that are objects or lists of them. One that is not here
	// may be anything.
	Vars map[string]Shape
	// Kinds are the kinds that there are; nil when that is not known.
	Kinds Kinds
	// Kind is that of the resource's own object, as far as it is known.
	Kind Kind
	// Sure are the ways through the object of which something before has made sure that they lead to something, as in
	// self.spec.tls. Unset: where an expression comes upon nothing is dealt with, so nothing need be sure.
	Sure  []string
	Unset bool
	// Params are the names of the handler's parameters; nil where they are not known.
	Params map[string]bool
	// Without are variables that expressions can see nothing in here, and why that is.
	Without map[string]string
}

// With returns the schemas with the shape of one more of Vars.
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

// NamedChild is a child that a handler makes under a name.
type NamedChild struct {
	// Name is unique within the resource. A CEL identifier.
	Name string
	// Kind is empty where it is worked out only when the handler runs.
	Kind schema.GroupVersionKind
	// List says that there may be several, which have keys.
	List bool
	// Object tells it from other objects, as its template has it with all expressions: two children of one
	// Object are the same one. Empty where that is not known, or where it is not always made.
	Object string
	// Maker is the name under which it is made, one of Makers of its handler. Needs are the names of the children of the
	// same handler that must be there before it.
	Maker string
	Needs []string
	// Judged: its maker says when it is ready, and waits for that.
	Judged bool
}

// Misfit is an error: what is wrong at a place within an action's configuration.
type Misfit struct {
	// Path leads to the faulty value from the handler, as in {"with", "channel"}. An index of a
	// list is its number.
	Path []string
	// Line and Column, both from 1, are the place within the value, when that is a text; zero means
	// its beginning. Columns count characters.
	Line, Column int
	// Key: it is the key of the value that is at fault.
	Key bool
	// Message says what is wrong.
	Message string
	// Warning: it may be right all the same.
	Warning bool
}

// Warns reports whether what is found may be right all the same.
func (e *Misfit) Warns() bool { return e.Warning }

// IsWarning reports whether an error of a [Check] is about what may be right all the same.
func IsWarning(err error) bool {
	found, is := errors.AsType[interface {
		error
		Warns() bool
	}](err)
	return is && found.Warns()
}

// Error returns the message.
func (e *Misfit) Error() string { return e.Message }
