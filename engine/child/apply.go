// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Applier applies the children of one owner.
type Applier struct {
	Owner Owner
	// Manager is the field manager.
	Manager string
	// AppliedKey is the key of the annotation that tells what a child was applied from.
	AppliedKey string
	// Settled remembers children that differ from what was desired although they were applied so:
	// the server rewrote a value. It is the owner's, and lives as long as the process.
	Settled map[string]string
}

// Apply makes the child as desired, which comes from [Owner.Desired]. Cached is the object of
// that name in the cache, nil when there is none. Sent tells whether there was a write request;
// result is what it made of the object, also where it is given back.
// An object that the owner does not own is left alone; the error is a *dsl.NotOwnedError then.
func (a Applier) Apply(ctx context.Context, c dynamic.ResourceInterface, desired, cached *unstructured.Unstructured) (result *unstructured.Unstructured, sent bool, err error) {
	live := cached
	if live == nil {
		// The cache may lag, and a narrower scope does not show everything: ask before creating.
		live, err = c.Get(ctx, desired.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			result, err = a.create(ctx, c, desired)
			return result, result != nil, err
		}
		if err != nil {
			return nil, false, fmt.Errorf("applying %s: reading it: %w", name(desired), err)
		}
	}
	if ours, by := a.Owner.owned(live); !ours {
		return nil, false, notOwned(live, by)
	}
	if live.GetDeletionTimestamp() != nil || a.holds(desired, live) {
		return live, false, nil
	}
	result, err = a.update(ctx, c, desired, live)
	return result, err == nil, err
}

// holds reports whether applying desired would change nothing.
func (a Applier) holds(desired, live *unstructured.Unstructured) bool {
	if live.GetAnnotations()[a.AppliedKey] != desired.GetAnnotations()[a.AppliedKey] {
		return false
	}
	return covers(desired.Object, live.Object, false) || a.Settled[name(live)] == content(live)
}

// create applies without force, so that an object which somebody else made in this moment is not
// overwritten. One that the request joined nevertheless, because nothing conflicted, is given
// back as it was.
func (a Applier) create(ctx context.Context, c dynamic.ResourceInterface, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := c.Apply(ctx, desired.GetName(), desired, metav1.ApplyOptions{FieldManager: a.Manager})
	if apierrors.IsConflict(err) {
		return nil, notOwned(desired, "")
	}
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", name(desired), err)
	}
	for _, entry := range result.GetManagedFields() {
		if entry.Manager != a.Manager {
			return a.giveBack(ctx, c, result)
		}
	}
	a.settle(desired, result)
	return result, nil
}

// giveBack drops every field that this operator has in an object, and says that it is not ours.
func (a Applier) giveBack(ctx context.Context, c dynamic.ResourceInterface, joined *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	empty := &unstructured.Unstructured{}
	empty.SetAPIVersion(joined.GetAPIVersion())
	empty.SetKind(joined.GetKind())
	empty.SetName(joined.GetName())
	empty.SetNamespace(joined.GetNamespace())
	back, err := c.Apply(ctx, joined.GetName(), empty, metav1.ApplyOptions{FieldManager: a.Manager, Force: true})
	if err != nil {
		return joined, fmt.Errorf("giving back %s: %w", name(joined), err)
	}
	return back, notOwned(joined, "")
}

func (a Applier) update(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	guarded := desired.DeepCopy()
	guarded.SetUID(live.GetUID()) // another object of this name, made meanwhile, is not ours
	result, err := c.Apply(ctx, desired.GetName(), guarded, metav1.ApplyOptions{FieldManager: a.Manager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", name(desired), err)
	}
	a.settle(desired, result)
	return result, nil
}

func (a Applier) settle(desired, result *unstructured.Unstructured) {
	delete(a.Settled, name(result))
	if !covers(desired.Object, result.Object, false) {
		a.Settled[name(result)] = content(result)
	}
}

// content digests what a child is, without what changes by itself.
func content(u *unstructured.Unstructured) string {
	tree := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "status" && key != "metadata" {
			tree[key] = value
		}
	}
	tree["labels"], tree["annotations"] = u.GetLabels(), u.GetAnnotations()
	return digest(tree)
}

func name(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

func notOwned(u *unstructured.Unstructured, by string) error {
	return &dsl.NotOwnedError{Resource: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Owner: by}
}
