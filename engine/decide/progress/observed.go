// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TakenOver returns the state annotation for an object that an earlier version of the operator has marked as handled in
// status.observedGeneration; see [patch.HasMarker]. Snapshot is of the object. A text that is newer than the number is kept.
func TakenOver(rules *Rules, o *unstructured.Unstructured, snapshot *Snapshot) (text string, err error) {
	text = o.GetAnnotations()[rules.Annotation]
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if observed == 0 || newer(text, o, observed) {
		return text, nil
	}
	b := handledAt(observed, rules.Handlers, o, snapshot)
	text, _, err = b.Encode(rules.Handlers, snapshot, Room(o.GetAnnotations(), rules.Annotation))
	return text, err
}

// newer reports whether a text was written after the number. A text that was written beside a number says so, and is
// void as soon as the number is greater than its generation.
func newer(text string, o *unstructured.Unstructured, observed int64) bool {
	b, err := Load(text, o.GetUID())
	if err != nil || b.Text() == "" {
		return false
	}
	var beside struct {
		Number bool `json:"counted"`
	}
	_ = json.Unmarshal([]byte(text), &beside) // Load has read it
	return !beside.Number || b.Generation >= observed
}

// handledAt returns the progress of an object that was handled at a generation. If that is not its present one, each
// handler with stored progress runs once more.
func handledAt(observed int64, handlers []Handler, o *unstructured.Unstructured, snapshot *Snapshot) Progress {
	b := Progress{UID: o.GetUID(), Generation: o.GetGeneration(), Known: true}
	for _, h := range handlers {
		e := Entry{}
		if h.Stores() {
			e = Entry{ViewName: h.View.Name(), Handled: snapshot.Digest(h.View)}
		}
		if h.Stores() && observed != o.GetGeneration() {
			e.Handled = rerun
		}
		b = b.With(h.ID, e)
	}
	return b
}
