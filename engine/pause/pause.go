// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pause says which objects an operator leaves alone for a while, and why. It is pure.
package pause

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// By says where a pause is declared.
type By string

// The places.
const (
	// Object: an annotation of the object itself.
	Object By = "object"
)

// Proceed is the value of the annotation beside a pause, or of a flag, with which deletions go on.
const Proceed = "proceed"

// Pause is one pause.
type Pause struct {
	By By
	// Reason is what the person who paused says.
	Reason string
	// Deletions: objects that are being deleted are handled nevertheless.
	Deletions bool
}

// String says it as the rest of a sentence that begins with the object.
func (p Pause) String() string { return cmp.Or(p.Reason, "no reason is given") }

// Board knows the pauses of one operator. Its methods may be called by any number of goroutines.
type Board struct {
	// names are the operator, and the same under its earlier names.
	names []*dsl.Operator
}

// NewBoard returns the board of an operator.
func NewBoard(op *dsl.Operator) *Board {
	return &Board{names: append([]*dsl.Operator{op}, op.Earlier()...)}
}

// Of returns the pause that keeps handlers from an object; nil if there is none. A deletion that goes on is not kept.
func (b *Board) Of(o metav1.Object) *Pause {
	p := b.declared(o.GetAnnotations(), Object)
	if p != nil && p.Deletions && o.GetDeletionTimestamp() != nil {
		return nil
	}
	return p
}

// declared returns the pause that annotations declare. The annotation counts whatever its value is.
func (b *Board) declared(annotations map[string]string, by By) *Pause {
	for _, op := range b.names {
		if reason, found := annotations[op.PausedAnnotation()]; found {
			return &Pause{By: by, Reason: reason, Deletions: annotations[op.PausedDeletionsAnnotation()] == Proceed}
		}
	}
	return nil
}
