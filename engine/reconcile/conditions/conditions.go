// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditions computes the conditions that the engine itself keeps on an object, from what a reconcile has found. It is pure.
package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The types of the engine's own conditions, beside [dsl.Ready].
const (
	// Reconciling: the object is not ready, and the operator or the cluster works on that. Reconciling and Stalled have the
	// meaning that kstatus gives them: an object has them only while they are True.
	Reconciling = "Reconciling"
	// Stalled: the object is not ready, and a person is needed.
	Stalled = "Stalled"
	// HandlersFailing names the handlers that fail.
	HandlersFailing = "HandlersFailing"
	// Paused: the object is paused.
	Paused = "Paused"
	// DeletionsHeld: a limit holds the deletion of the object, or of children of it.
	DeletionsHeld = "DeletionsHeld"
)

// Handler is the state of one handler of an object at the end of a reconcile.
type Handler struct {
	ID string
	// Reason is why the handler fails: [HandlerFailed], [HandlerFailing] or [FilterFailed]. It is empty if the handler does not fail.
	Reason string
	// Message explains the reason; without a reason it explains what the handler waits for.
	Message string
	// Ran: the handler ran in this reconcile. Undecided: it is about to be tried again, and the outcome is not known.
	Ran, Undecided bool
	// Counts: the object is not ready before the handler is through.
	Counts bool
	// Open: the handler has something to do, and is not through. Waiting: it waits for something.
	Open, Waiting bool
	// Own is the condition in which the handler reports; nil for none.
	Own *metav1.Condition
}

// All returns an object's conditions. Callers must not change them.
func All(o *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	return plain.Maps(list)
}

// Of returns an object's condition of a type, or nil. Callers must not change it.
func Of(o *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range All(o) {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

// Text returns a text in a condition; empty if the key is absent.
func Text(condition map[string]any, key string) string {
	text, _ := condition[key].(string)
	return text
}

// Typed returns a condition of an object without its times.
func Typed(c map[string]any) metav1.Condition {
	return metav1.Condition{
		Type: Text(c, "type"), Status: metav1.ConditionStatus(Text(c, "status")), Reason: Text(c, "reason"), Message: Text(c, "message"),
	}
}

// IsEarlier reports whether a condition was set for an earlier generation of the object.
func IsEarlier(c map[string]any, o *unstructured.Unstructured) bool {
	seen, is := c["observedGeneration"].(int64)
	return is && seen > 0 && seen < o.GetGeneration()
}

// List returns a list of a condition; an empty one for nil.
func List(c *metav1.Condition) []metav1.Condition {
	if c == nil {
		return nil
	}
	return []metav1.Condition{*c}
}

// Digest returns a digest of the status, reason and message of an object's condition. It is never zero.
func Digest(c map[string]any) uint64 { return digest(c["status"], c["reason"], c["message"]) }

// DigestOf returns the digest that an object's condition has when it is like c.
func DigestOf(c *metav1.Condition) uint64 { return digest(string(c.Status), c.Reason, c.Message) }

func digest(says ...any) uint64 {
	sum, err := plain.Hash(says)
	if err != nil || sum == 0 {
		return 1
	}
	return sum
}

// WithReadyOf returns a written object with the conditions Ready, Reconciling and Stalled of the object that handlers have seen: they
// have not seen the new ones.
func WithReadyOf(seen, written *unstructured.Unstructured) *unstructured.Unstructured {
	summary := func(c map[string]any) bool {
		return slices.Contains([]string{dsl.Ready, Reconciling, Stalled}, Text(c, "type"))
	}
	if !slices.ContainsFunc(All(written), summary) && !slices.ContainsFunc(All(seen), summary) {
		return written
	}
	var list []any
	for _, c := range All(written) {
		if !summary(c) {
			list = append(list, c)
		} else if was := Of(seen, Text(c, "type")); was != nil {
			list = append(list, was)
		}
	}
	for _, was := range All(seen) {
		if summary(was) && Of(written, Text(was, "type")) == nil {
			list = append(list, was)
		}
	}
	return &unstructured.Unstructured{Object: plain.Patched(written.Object, map[string]any{"status": map[string]any{"conditions": list}})}
}
