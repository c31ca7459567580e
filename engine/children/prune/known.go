// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// known is the register as it was read last.
type known struct {
	// object is the ConfigMap, or nil if there is none.
	object *unstructured.Unstructured
	kinds  map[string][]schema.GroupKind
	// read is false as long as nothing was read.
	read bool
	// doubt is true when the ConfigMap may have changed since it was read.
	doubt bool
}

// edit returns the new kinds of a resource.
type edit func([]schema.GroupKind) []schema.GroupKind

// stays reports whether an edit changes nothing, for certain.
func (k known) stays(resource string, to edit) bool {
	return k.read && !k.doubt && len(to(k.kinds[resource])) == len(k.kinds[resource])
}

// immutable reports whether the ConfigMap cannot be changed.
func (k known) immutable() bool {
	if k.object == nil {
		return false
	}
	fixed, _, _ := unstructured.NestedBool(k.object.Object, "immutable")
	return fixed
}

// writeAgain is how long a register is left alone after the server has rejected it.
const writeAgain = 10 * time.Minute

// refusal says whether the server rejects the register: a right is missing, or the server does not accept the ConfigMap.
type refusal struct {
	refused bool
	// again is when the register is tried again. It is zero if the register waits for a right.
	again time.Time
	// granted is closed when a right may have been given.
	granted chan struct{}
}

// begin records a rejection. Untaken is false if a right is missing.
func (r *refusal) begin(untaken bool, now time.Time) {
	r.refused, r.again = true, time.Time{}
	if untaken {
		r.again = now.Add(writeAgain)
	}
}

// lasts reports whether it is too early to try the register again.
func (r *refusal) lasts(now time.Time) bool {
	return r.refused && (r.again.IsZero() || now.Before(r.again))
}

// end forgets the refusal.
func (r *refusal) end() { r.refused, r.again = false, time.Time{} }

// grant ends a rejection because a right was granted, and wakes its waiters.
func (r *refusal) grant() {
	if !r.refused {
		return
	}
	r.refused = false
	close(r.granted)
	r.granted = make(chan struct{})
}
