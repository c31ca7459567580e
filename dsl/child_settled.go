// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ChildInputs remembers for the life of the process from which inputs children were applied, so that code which computes
// children need not compute those that would come out as they are. The [Children] of the engine have it; others need not.
type ChildInputs interface {
	// Settled returns a child that is unchanged since [Children.Apply] found it as desired, if it was applied from these
	// inputs. It counts as applied in this attempt.
	Settled(spec ChildSpec, inputs uint64) (SettledChild, bool)
	// Settle notes the inputs of all children that a handler desires. Children that it has applied, and that were not yet as
	// desired, are settled when the next attempt has applied them.
	Settle(handler string, children []SettledInputs)
	// Left returns those children of [ChildReader.All] that a handler has made and does not keep.
	Left(handler string, keeps func(SettledChild) bool) ([]ChildObject, error)
}

// SettledInputs are the inputs of a child.
type SettledInputs struct {
	ChildSpec
	// Inputs is a hash of all that its template reads, and Size is how large it comes out.
	Inputs uint64
	Size   int
}

// SettledChild is a child that exists, without its content.
type SettledChild struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
	// Size is that of [SettledInputs].
	Size int
	// Read returns the child.
	Read func() *unstructured.Unstructured
}
