// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ownership says how a child is tied to its owner.
type Ownership string

// The ways of owning.
const (
	// Owned: a controller owner reference. The default. Kubernetes deletes the child after its
	// owner; both are in one namespace, or the owner has none.
	Owned Ownership = "owned"
	// Labelled: a label that names the owner, for children in other namespaces or without one. It
	// counts for what the owner's record lists; see [Operator.ChildrenAnnotation].
	// The operator deletes them, so its finalizer holds the owner until they are gone.
	Labelled Ownership = "labelled"
	// Unowned: nothing. The object is applied and then forgotten: it is not watched, not pruned
	// and not deleted. An annotation names who applied it, so that no second owner does.
	Unowned Ownership = "none"
)

// Choices returns the ways, for those who read one.
func (Ownership) Choices() (what string, words []string) {
	return "ownership", []string{string(Owned), string(Labelled), string(Unowned)}
}

// Adoption says what happens when an object of a child's name is there that nobody made for this
// owner.
type Adoption string

// The policies of adoption. An object that has another owner is never taken.
const (
	// AdoptNever leaves the object alone; the error is a [NotOwnedError]. The default.
	AdoptNever Adoption = "never"
	// AdoptIfUnowned takes an object that has no owner: no controller owner reference, and no label
	// or annotation by which this operator or another of its kind says whose it is.
	AdoptIfUnowned Adoption = "ifUnowned"
)

// Choices returns the policies, for those who read one.
func (Adoption) Choices() (what string, words []string) {
	return "adopt", []string{string(AdoptNever), string(AdoptIfUnowned)}
}

// DeletePolicy says what becomes of a child that is wanted no more, or whose owner is deleted.
type DeletePolicy string

// The policies of deletion.
const (
	// DeleteChild deletes it. The default.
	DeleteChild DeletePolicy = "delete"
	// OrphanChild leaves it behind without a tie to its owner, free for others. The operator's finalizer holds the owner until
	// that is done, and the owner's record lists the child; see [Operator.ChildrenAnnotation].
	OrphanChild DeletePolicy = "orphan"
	// RetainChild leaves it behind with a tie to its owner's name: another owner of this kind,
	// namespace and name takes it up again. Such a child has a label and no owner reference.
	RetainChild DeletePolicy = "retain"
)

// Choices returns the policies, for those who read one.
func (DeletePolicy) Choices() (what string, words []string) {
	return "onDelete", []string{string(DeleteChild), string(OrphanChild), string(RetainChild)}
}

// DriftPolicy says what is put back of a child that somebody else has changed.
type DriftPolicy string

// The policies of drift.
const (
	// DriftFields puts back the fields of the template, and takes away what kubectl's apply, create, edit, patch, replace,
	// scale and set added to a list or a map that the template has. Other fields stay as they are. The default.
	DriftFields DriftPolicy = "fields"
	// DriftStrict takes away every field that the template does not have and a command of kubectl has set, also
	// before the child was adopted. What controllers and the server's defaults have set stays.
	DriftStrict DriftPolicy = "strict"
	// DriftIgnore puts nothing back but the child itself, and what ties it to its owner. It is applied when the template
	// comes to something else than before. What becomes of a Secret's values is known for the life of the process.
	DriftIgnore DriftPolicy = "ignore"
)

// Choices returns the policies, for those who read one.
func (DriftPolicy) Choices() (what string, words []string) {
	return "drift", []string{string(DriftFields), string(DriftStrict), string(DriftIgnore)}
}

// ImmutablePolicy says what becomes of a child whose template comes to another value of a field that cannot be changed.
type ImmutablePolicy string

// The policies of what cannot be changed.
const (
	// FailImmutable leaves it as it is, and applying it fails. The default.
	FailImmutable ImmutablePolicy = "fail"
	// RecreateChild deletes it and makes it anew when it is gone. That is done for a template that has changed alone, of a
	// child that is the owner's, and when nothing else keeps the API server from taking it. What the child holds is lost.
	RecreateChild ImmutablePolicy = "recreate"
)

// Choices returns the policies, for those who read one.
func (ImmutablePolicy) Choices() (what string, words []string) {
	return "onImmutable", []string{string(FailImmutable), string(RecreateChild)}
}

// ChildSpec is how a child is kept; the zero value is an owned child without a name.
type ChildSpec struct {
	// Handler and Name say which child it is, Key which one of several of that name. They are
	// written onto the child, so that it is found again whatever it is called. Optional: a child
	// without a name is never pruned.
	Handler, Name, Key string
	// Ownership defaults to Owned.
	Ownership Ownership
	// Adopt defaults to AdoptNever.
	Adopt Adoption
	// OnDelete defaults to DeleteChild.
	OnDelete DeletePolicy
	// Drift defaults to DriftFields.
	Drift DriftPolicy
	// OnImmutable defaults to FailImmutable.
	OnImmutable ImmutablePolicy
}

// ByReference reports whether the child carries an owner reference.
func (s ChildSpec) ByReference() bool {
	return (s.Ownership == "" || s.Ownership == Owned) && s.OnDelete != RetainChild
}

// ByLabel reports whether the child is tied to its owner by a label, which counts only for what the
// owner's record lists; see [Operator.ChildrenAnnotation].
func (s ChildSpec) ByLabel() bool { return !s.ByReference() && s.Ownership != Unowned }

// DesiredChild is a child that is about to be applied.
type DesiredChild struct {
	ChildSpec
	// Object is what [Children.Apply] takes as desired.
	Object any
}

// ChildObject is a child as it is found.
type ChildObject struct {
	ChildSpec
	// Object is the child as the cache has it, or as this pass has applied it.
	Object *unstructured.Unstructured
}

// ChildReader reads the objects that the handled object owns. A handler may use it from several
// goroutines at once.
type ChildReader interface {
	// Missed reports whether there are objects that say they are this one's children while it has no
	// record at all: children from before there were records may be among them. Entering what is
	// wanted finds out. The error is that of All.
	Missed() (bool, error)
	// Stale reports whether [Children.Apply] would change a child that is there. One that is not there is
	// not stale; live is nil then. For an object that Apply would leave alone the error is Apply's.
	// Nothing is written.
	Stale(ctx context.Context, desired any, spec ChildSpec) (stale bool, live *unstructured.Unstructured, err error)
	// All returns every child that was applied with a name, of all kinds that the resource owns,
	// sorted by handler, name, key, and name of the object. Unowned ones are among them
	// only when this pass applied them. What cannot be read from a child is left open in its spec:
	// Adopt, Drift, and how one would be owned that is retained. Children that are being deleted have a
	// deletion timestamp. The error names a kind of which not all objects can be seen; one that
	// the API server does not serve has none.
	All() ([]ChildObject, error)
	// Get returns the child of that name from the cache, nil when there is none. The resource
	// must be one that the handled resource owns. Where the child is not in the owner's namespace,
	// the name is "namespace/name", here and for [Children.Delete].
	Get(resource, name string) (*unstructured.Unstructured, error)
	// List returns the object's children of that resource from the cache, sorted by name.
	List(resource string) ([]*unstructured.Unstructured, error)
}

// Children are the objects that the handled object owns. A handler may use it from several
// goroutines at once. What only reads takes a [ChildReader].
type Children interface {
	ChildReader
	// Apply makes the child as desired says, by server-side apply under the operator's field
	// manager: fields that desired does not have are left to others. Desired is a map or any
	// value that is an object in JSON; apiVersion, kind and metadata.name are required, the
	// namespace defaults to the owner's. What ties it to its owner is added as the spec says; at
	// most one is given. A child whose tie is to be another one than before is tied anew, and
	// not made again. Only an unowned child may be of a kind that is not declared.
	//
	// Nothing is sent when the child is so already. Result is the child as the server returned it, or as the
	// cache has it.
	//
	// The error is one of [Waiting] where the child cannot be as desired yet; the handler returns it, and runs again.
	// There are three reasons. The child is being deleted, and is made again when it is gone: Apply itself may have deleted
	// it, because a field cannot be changed and the spec says [RecreateChild]. The garbage collector has yet to delete it with an
	// earlier owner of the same name. Another handler of this object keeps it otherwise, and is asked whether it still does;
	// if so, the error is a [CollisionError], and the child stays. An object of that name that this object does not
	// own is left alone, and the error is a [NotOwnedError]. Other errors wrap that of the API machinery, as when a field
	// cannot be changed.
	//
	// A child that has a label instead of an owner reference, or is to be left behind, is entered into its owner's record
	// before it is made, which costs a write to the owner, once. The first one's puts the finalizer on, too.
	Apply(ctx context.Context, desired any, spec ...ChildSpec) (*unstructured.Unstructured, error)
	// Enter enters those of the children that have a label, or are to be left behind, into the owner's record, all with one
	// request, where Apply would make one for each. Call it before you apply many; nothing is sent for
	// what the record lists already. What Apply would refuse is left out, and Apply says why.
	Enter(ctx context.Context, children ...DesiredChild) error
	// Remove takes a child of All away as its OnDelete says: it is deleted, and only if it still
	// is the same object, or its tie to the owner is cut; nothing happens to one that is retained or
	// unowned. While the owner lives, the child stays for now where another handler may want it and has not succeeded yet with
	// the object as it is; this handler runs again then. A child that is gone, or not this owner's any more, is no error.
	Remove(ctx context.Context, child ChildObject) error
	// Delete deletes the child of that name when this object owns it. One that is not there is
	// no error.
	Delete(ctx context.Context, resource, name string) error
}

// ChildAnnotation is the key of the annotation that says which child an object is:
// "<handler>/<name>" or "<handler>/<name>/<key>", each part escaped as in the path of a URL, and
// behind a semicolon its [DeletePolicy] when that is not [DeleteChild]. A child without a name has "<handler>/",
// for the handler that applied it last.
func (op *Operator) ChildAnnotation() string { return op.Prefix() + "/child" }

// OwnerAnnotation is the key of the annotation that names the owner of a child without an owner
// reference: "<group>/<kind>/<namespace>/<name>", with nothing for a namespace that it has not.
// Unowned children have it too.
func (op *Operator) OwnerAnnotation() string { return op.Prefix() + "/owner" }

// OwnerLabel is the key of the label by which children without an owner reference are found: the
// owner's uid, or for a child that is retained a digest of the owner's name.
func (op *Operator) OwnerLabel() string { return op.Prefix() + "/owner" }

// ChildrenAnnotation is the key of the annotation on an owner that lists its labelled children, and those that are to be left
// behind when it is deleted: the owner's record. A deletion looks for each of them. Labels and annotations of a child are written by whoever may write the child; the
// record only by who may write the owner. So a label ties just what the record lists.
func (op *Operator) ChildrenAnnotation() string { return op.Prefix() + "/children" }

// Validate reports a word that is not known, or a policy that cannot be kept.
func (s ChildSpec) Validate() error {
	for _, err := range []error{
		choice(s.Ownership), choice(s.Adopt), choice(s.OnDelete), choice(s.Drift), choice(s.OnImmutable),
	} {
		if err != nil {
			return err
		}
	}
	if s.Ownership == Unowned && s.OnDelete != "" {
		return fmt.Errorf("onDelete %s: an object that is not owned is never deleted", s.OnDelete)
	}
	if s.Ownership == Unowned && s.OnImmutable == RecreateChild {
		return fmt.Errorf("onImmutable %s: an object that is not owned is never deleted", s.OnImmutable)
	}
	return nil
}

// choice reports a word that is none of its type's; an empty one stands for the default.
func choice[T interface {
	~string
	Choices() (what string, words []string)
}](word T) error {
	what, words := word.Choices()
	if word == "" || slices.Contains(words, string(word)) {
		return nil
	}
	last := len(words) - 1
	return fmt.Errorf("%s %q: want %s or %s", what, string(word), strings.Join(words[:last], ", "), words[last])
}
