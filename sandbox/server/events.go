// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coreEvents and newEvents are the two resources of Events. They have other names for some of their fields, and are
// stored as those of the core group.
func coreEvents() schema.GroupResource { return schema.GroupResource{Resource: "events"} }

func newEvents() schema.GroupResource {
	return schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
}

// eventFields returns the stored names of the fields that the group events.k8s.io names in another way.
func eventFields() map[string]string {
	return map[string]string{
		"regarding":                "involvedObject",
		"note":                     "message",
		"reportingController":      "reportingComponent",
		"deprecatedSource":         "source",
		"deprecatedFirstTimestamp": "firstTimestamp",
		"deprecatedLastTimestamp":  "lastTimestamp",
		"deprecatedCount":          "count",
	}
}

// refusedKind is the kind in the refusal of an invalid object: a real server validates all Events as those of the core group.
func (t *table) refusedKind() schema.GroupKind {
	if t.stored != nil {
		return schema.GroupKind{Kind: t.kind}
	}
	return t.groupKind()
}

// share makes a table one of the objects of another, with other names of fields.
func (t *table) share(other *table, stored map[string]string) {
	t.objects, t.streams, t.stored = other.objects, other.streams, stored
	t.shown = map[string]string{}
	for shown, name := range stored {
		t.shown[name] = shown
	}
}

// asShown returns an object with the names of fields that its table shows.
func (t *table) asShown(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := renamed(o, t.shown)
	if t.shown != nil {
		for _, name := range []string{"reportingController", "reportingInstance"} { // which the core group shows in any case
			if out.Object[name] == "" {
				delete(out.Object, name)
			}
		}
	}
	return out
}

// asStored is the opposite of asShown.
func (t *table) asStored(o *unstructured.Unstructured) *unstructured.Unstructured {
	return renamed(o, t.stored)
}

func renamed(o *unstructured.Unstructured, names map[string]string) *unstructured.Unstructured {
	if len(names) == 0 {
		return o
	}
	out := maps.Clone(o.Object)
	for from := range names {
		delete(out, from)
	}
	for from, to := range names {
		if value, found := o.Object[from]; found {
			out[to] = value
		}
	}
	return &unstructured.Unstructured{Object: out}
}
