// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Event is an Event of an operator.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Kind, Namespace and Name identify the object.
	Kind, Namespace, Name string
	// Reason, Action and Note are those of the Event; the action is a handler's id.
	Reason, Action, Note string
	// Count is how often it was sent.
	Count int64
}

// Events returns the existing Events, the oldest first.
func (c *Cluster) Events() []Event {
	c.t.Helper()
	var out []Event
	list := c.List("events.v1.events.k8s.io", "")
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetUID(), b.GetUID()) }) // uids rise
	for _, o := range list {
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(o.Object, path...)
			return value
		}
		count, repeated, _ := unstructured.NestedInt64(o.Object, "series", "count")
		if !repeated {
			count = 1
		}
		out = append(out, Event{
			Type: text("type"), Kind: text("regarding", "kind"), Namespace: text("regarding", "namespace"),
			Name: text("regarding", "name"), Reason: text("reason"), Action: text("action"), Note: text("note"), Count: count,
		})
	}
	return out
}
