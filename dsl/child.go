// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ownership says how a child is tied to its owner.
type Ownership string

// The kinds of ownership.
const (
	// Owned: the child has a controller owner reference. The default. Kubernetes deletes the child after its owner.
	// Both are in one namespace, or the owner is cluster-scoped.
	Owned Ownership = "owned"
	// Labelled: the child has a label that names the owner. It is for children in other namespaces, and for
	// cluster-scoped ones. The label counts only for children that the owner's inventory lists; see
	// [Operator.ChildrenAnnotation]. The operator deletes these children, so its finalizer holds the owner until
	// they are gone.
	Labelled Ownership = "labelled"
	// Unowned: the child is not tied to the owner. The operator applies the object, and does not watch, prune or
	// delete it. An annotation names the owner that applied it, so that a second owner does not apply it, too.
	Unowned Ownership = "none"
)

// Choices returns the kinds of ownership.
func (Ownership) Choices() (what string, words []string) {
	return "ownership", []string{string(Owned), string(Labelled), string(Unowned)}
}

// Adoption says what happens when an object with the child's name already exists and was not made for this owner.
type Adoption string

// The policies of adoption. An object that has another owner is never adopted.
const (
	// AdoptNever leaves the object alone, and Apply returns a [NotOwnedError]. The default.
	AdoptNever Adoption = "never"
	// AdoptIfUnowned adopts an object that has no owner: no controller owner reference, and no owner label or
	// annotation of this operator or another Handwerk operator.
	AdoptIfUnowned Adoption = "ifUnowned"
)

// Choices returns the policies of adoption.
func (Adoption) Choices() (what string, words []string) {
	return "adopt", []string{string(AdoptNever), string(AdoptIfUnowned)}
}

// DeletePolicy says what happens to a child that is not desired any more, or whose owner is deleted.
type DeletePolicy string

// The policies of deletion.
const (
	// DeleteChild deletes the child. The default.
	DeleteChild DeletePolicy = "delete"
	// OrphanChild leaves the child in place and cuts its tie to the owner, so that others may adopt it. The
	// operator's finalizer holds the owner until that is done, and the owner's inventory lists the child; see
	// [Operator.ChildrenAnnotation].
	OrphanChild DeletePolicy = "orphan"
	// RetainChild leaves the child in place, tied to its owner's name: a new owner of the same kind, namespace and
	// name takes it over. Such a child has a label and no owner reference.
	RetainChild DeletePolicy = "retain"
)

// Choices returns the policies of deletion.
func (DeletePolicy) Choices() (what string, words []string) {
	return "onDelete", []string{string(DeleteChild), string(OrphanChild), string(RetainChild)}
}

// DeleteOrder says in which order the children of one handler are deleted when their owner is.
type DeleteOrder string

// The orders of deletion.
const (
	// DeleteAny leaves the order to Kubernetes, which deletes children with an owner reference side by side, after their
	// owner. The default.
	DeleteAny DeleteOrder = "any"
	// DeleteReverse: the child goes before its owner, and after the children that need it. Each is gone, with all that it
	// owns itself, before the next is deleted.
	DeleteReverse DeleteOrder = "reverse"
)

// Choices returns the orders of deletion.
func (DeleteOrder) Choices() (what string, words []string) {
	return "deleteOrder", []string{string(DeleteAny), string(DeleteReverse)}
}

// DriftPolicy says which changes by others the operator reverts on a child.
type DriftPolicy string

// The policies of drift.
const (
	// DriftFields restores the fields of the template. It also removes entries that kubectl apply, create, edit,
	// patch, replace, scale or set added to a list or a map of the template. Other fields stay as they are. The
	// default.
	DriftFields DriftPolicy = "fields"
	// DriftStrict removes every field that is not in the template, whoever has set it, also before the child was
	// adopted. It leaves what the server's defaults and webhooks set, what is set by a subresource such as status and
	// scale, fields of kube-controller-manager, kube-scheduler and kubelet, and those of [ChildSpec].Allow. Of metadata,
	// only labels and annotations are removed.
	DriftStrict DriftPolicy = "strict"
	// DriftIgnore restores only the child itself and its tie to the owner. The child is applied when the rendered
	// template changes. For values of Secrets, the operator remembers the last template only as long as the process
	// lives.
	DriftIgnore DriftPolicy = "ignore"
)

// Choices returns the policies of drift.
func (DriftPolicy) Choices() (what string, words []string) {
	return "drift", []string{string(DriftFields), string(DriftStrict), string(DriftIgnore)}
}

// ImmutablePolicy says what happens to a child when its template changes an immutable field.
type ImmutablePolicy string

// The policies for immutable fields.
const (
	// FailImmutable leaves the child as it is, and Apply fails. The default.
	FailImmutable ImmutablePolicy = "fail"
	// RecreateChild deletes the child and creates it again when it is gone. It does so only if the template has
	// changed, the child belongs to this owner, and the API server refuses the update for no other reason. Data in
	// the child is lost.
	RecreateChild ImmutablePolicy = "recreate"
)

// Choices returns the policies for immutable fields.
func (ImmutablePolicy) Choices() (what string, words []string) {
	return "onImmutable", []string{string(FailImmutable), string(RecreateChild)}
}

// UpdatePolicy says how a child gets what its changed template says.
type UpdatePolicy string

// The policies of updates.
const (
	// UpdateInPlace applies the template to the child that is there. The default.
	UpdateInPlace UpdatePolicy = "inPlace"
	// UpdateRecreate deletes the child, and creates it again when it is gone. A dry run comes before: a child that the
	// template would not change, but for labels and annotations of the operator, is not deleted, nor is one if the API
	// server would refuse the change for another reason than an immutable field. Data in the child is lost.
	UpdateRecreate UpdatePolicy = "recreate"
	// UpdateOnDelete leaves the child as it is until somebody deletes it. Then it is created from the new template.
	// Until then its drift is not put back.
	UpdateOnDelete UpdatePolicy = "onDelete"
)

// Choices returns the policies of updates.
func (UpdatePolicy) Choices() (what string, words []string) {
	return "update", []string{string(UpdateInPlace), string(UpdateRecreate), string(UpdateOnDelete)}
}

// ChildSpec says how a child is kept. The zero value is an owned child without a name.
type ChildSpec struct {
	// Handler and Name identify the child. Key distinguishes several children of one name. All three are written to
	// the child, so that it is found again whatever its object is called. Optional: a child without a name is never
	// pruned.
	Handler, Name, Key string
	// Ownership defaults to Owned.
	Ownership Ownership
	// Adopt defaults to AdoptNever.
	Adopt Adoption
	// OnDelete defaults to DeleteChild.
	OnDelete DeletePolicy
	// DeleteOrder defaults to DeleteAny. The handler that deletes children sees to the order. With DeleteReverse,
	// [Children.Remove] deletes the child in the foreground: it is there until all that it owns is gone.
	DeleteOrder DeleteOrder
	// Drift defaults to DriftFields.
	Drift DriftPolicy
	// Allow are field managers, by their full names, whose fields stay where Drift is DriftStrict: of controllers that
	// complete the child, for example. It is for DriftStrict alone.
	Allow []string
	// Update defaults to UpdateInPlace. Changed values of a Secret are applied in place in any case, because nothing says
	// which values were applied before.
	Update UpdatePolicy
	// OnImmutable defaults to FailImmutable.
	OnImmutable ImmutablePolicy
}

// ByReference reports whether the child has an owner reference.
func (s ChildSpec) ByReference() bool {
	return (s.Ownership == "" || s.Ownership == Owned) && s.OnDelete != RetainChild
}

// ByLabel reports whether a label ties the child to its owner. Such a label counts only for children that the
// owner's inventory lists; see [Operator.ChildrenAnnotation].
func (s ChildSpec) ByLabel() bool { return !s.ByReference() && s.Ownership != Unowned }

// DesiredChild is a child that is about to be applied.
type DesiredChild struct {
	ChildSpec
	// Object is the argument desired of [Children.Apply].
	Object any
}

// ChildObject is a child that exists.
type ChildObject struct {
	ChildSpec
	// Object is the child from the cache, or as this reconcile has applied it.
	Object *unstructured.Unstructured
}

// ChildReader reads the objects that the handled object owns. It is safe for use by several goroutines at once.
type ChildReader interface {
	// Missed reports whether objects claim to be children of this object while it has no inventory at all. Some of
	// them may be children, and the inventory was lost; entering the desired children finds out. The error is that
	// of All.
	Missed() (bool, error)
	// Stale reports whether [Children.Apply] would change an existing child, or leaves it for [UpdateOnDelete]. A child
	// that does not exist is not stale, and live is nil. When Apply would refuse to touch the object, Stale returns the same error. Stale
	// writes nothing.
	Stale(ctx context.Context, desired any, spec ChildSpec) (stale bool, live *unstructured.Unstructured, err error)
	// All returns every child that was applied with a name, of all kinds that the resource owns. They are sorted by
	// handler, name, key and name of the object. Unowned children are included only when this reconcile applied them.
	// Children that are being deleted have a deletion timestamp. The spec lacks what a child does not record:
	// Adopt, Drift, DeleteOrder, and the ownership of a retained child. The error names a kind whose objects cannot all be read.
	// A kind that the API server does not serve has no objects.
	All() ([]ChildObject, error)
	// Get returns the child of that name from the cache, or nil. The handled resource must own the resource. For a
	// child in another namespace than its owner's, the name is "namespace/name", here and for [Children.Delete].
	Get(resource, name string) (*unstructured.Unstructured, error)
	// List returns the object's children of that resource from the cache, sorted by name.
	List(resource string) ([]*unstructured.Unstructured, error)
}

// Children reads and writes the objects that the handled object owns. It is safe for use by several goroutines at
// once. Code that only reads takes a [ChildReader].
type Children interface {
	ChildReader
	// Apply creates or updates a child by server-side apply, with the operator as field manager. Fields that
	// desired does not have are left to others. Desired is a map, or a value that is an object in JSON. It must
	// have apiVersion, kind and metadata.name; the namespace defaults to the owner's. At most one spec may be
	// given; it says how the child is tied to its owner. When the tie changes, the child is tied in the new way,
	// and not created again. Only an unowned child may be of a kind that the resource does not declare.
	//
	// Apply sends no request when the child already is as desired. The result is the child as the server returned
	// it, or as the cache has it.
	//
	// The error is one of [Waiting] when the child cannot be as desired yet. The handler should return it, and runs
	// again. There are three such cases:
	//
	//   - The child is being deleted. It is created again when it is gone. Apply itself may have deleted it because of
	//     an immutable field; see [RecreateChild].
	//   - An earlier owner of the same name is gone, and the garbage collector has yet to delete its child.
	//   - Another handler of this object applies the child differently. The engine checks whether that handler still
	//     does. If so, the error is a [CollisionError], and the child stays.
	//
	// Where desired has metadata.resourceVersion, it was made from that version of the child: a child that has another
	// version by now is not changed, and the error is a conflict.
	//
	// When an object of that name exists and this object does not own it, Apply leaves it alone and returns a
	// [NotOwnedError]. Other errors wrap that of the API machinery, as for an immutable field.
	//
	// A child that has a label instead of an owner reference, or that stays when its owner is deleted, is first
	// entered into its owner's inventory. That costs one write to the owner, once. The write for the first such child
	// also adds the finalizer.
	Apply(ctx context.Context, desired any, spec ...ChildSpec) (*unstructured.Unstructured, error)
	// Enter enters labelled children, and children that stay when the owner is deleted, into the owner's inventory. It
	// needs one request for all of them, where Apply needs one for each, so call it before you apply many. It sends
	// nothing for children that the inventory lists already. It skips children that Apply would refuse; Apply returns
	// the error.
	Enter(ctx context.Context, children ...DesiredChild) error
	// Remove takes a child of All away as its OnDelete says: it deletes the child, if that still is the same
	// object, or cuts the tie to the owner. Retained and unowned children stay. While the owner lives, the child
	// also stays for now when another handler may desire it and has not succeeded yet with the current object; this
	// handler then runs again. A child that is gone, or belongs to another owner now, is no error.
	Remove(ctx context.Context, child ChildObject) error
	// Delete deletes the child of that name if this object owns it. It returns no error when the child does not
	// exist.
	Delete(ctx context.Context, resource, name string) error
}

// SharedChildren returns children for code that changes none of the objects that it gets. They are then not copied for it.
func SharedChildren(c Children) Children {
	if s, shares := c.(interface{ Shared() Children }); shares {
		return s.Shared()
	}
	return c
}

// SharedReader is [SharedChildren] for code that only reads.
func SharedReader(c ChildReader) ChildReader {
	switch s := c.(type) {
	case interface{ Shared() Children }:
		return s.Shared()
	case interface{ Shared() ChildReader }:
		return s.Shared()
	}
	return c
}

// ChildAnnotation is the key of the annotation that identifies a child: "<handler>/<name>" or
// "<handler>/<name>/<key>", with each part escaped as in the path of a URL. A [DeletePolicy] other than
// [DeleteChild] follows behind a semicolon. A child without a name has "<handler>/", for the handler that applied
// it last.
func (op *Operator) ChildAnnotation() string { return op.Prefix() + "/child" }

// OwnerAnnotation is the key of the annotation that names the owner of a child without an owner reference:
// "<group>/<kind>/<namespace>/<name>". The namespace is empty for a cluster-scoped owner. Unowned children have it,
// too.
func (op *Operator) OwnerAnnotation() string { return op.Prefix() + "/owner" }

// OwnerLabel is the key of the label on children without an owner reference. Its value is the owner's uid, or for a
// retained child a digest of the owner's name.
func (op *Operator) OwnerLabel() string { return op.Prefix() + "/owner" }

// ChildrenAnnotation is the key of the owner's inventory: an annotation on the owner that lists its labelled children,
// and those that stay when it is deleted. A deletion looks for each of them. Whoever may write a child may change
// its labels and annotations; only those who may write the owner can change the inventory. So a label counts only for
// children that the inventory lists.
func (op *Operator) ChildrenAnnotation() string { return op.Prefix() + "/children" }

// Validate reports an unknown word, or a policy that cannot be kept.
func (s ChildSpec) Validate() error {
	for _, err := range []error{
		choice(s.Ownership), choice(s.Adopt), choice(s.OnDelete), choice(s.DeleteOrder), choice(s.Drift), choice(s.Update), choice(s.OnImmutable),
	} {
		if err != nil {
			return err
		}
	}
	if len(s.Allow) > 0 && s.Drift != DriftStrict {
		return errors.New("allow is only for drift: strict")
	}
	if slices.Contains(s.Allow, "") {
		return errors.New("allow has an empty name")
	}
	if s.DeleteOrder == DeleteReverse && (s.Ownership == Unowned || s.OnDelete == OrphanChild || s.OnDelete == RetainChild) {
		return errors.New("deleteOrder reverse: the child is not deleted with its owner")
	}
	if s.Ownership != Unowned {
		return nil
	}
	switch {
	case s.OnDelete != "":
		return fmt.Errorf("onDelete %s: an object that is not owned is never deleted", s.OnDelete)
	case s.Update == UpdateRecreate:
		return fmt.Errorf("update %s: an object that is not owned is never deleted", s.Update)
	case s.OnImmutable == RecreateChild:
		return fmt.Errorf("onImmutable %s: an object that is not owned is never deleted", s.OnImmutable)
	}
	return nil
}

// choice reports a word that its type does not have. An empty word stands for the default.
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
