// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// event is an Event, as often as it was sent since the last expectation.
type event struct {
	object, kind, reason, message string
	times                         int64
}

// String is the Event for people.
func (e event) String() string {
	out := fmt.Sprintf("%-7s %s %s: %s", e.kind, e.object, e.reason, e.message)
	if e.times > 1 {
		out += fmt.Sprintf(" (%d times)", e.times)
	}
	return out
}

// events returns the Events since the last expectation.
func (r *runner) events() (out []event, err error) {
	served, err := r.resource("events.events.k8s.io")
	if err != nil {
		return nil, err
	}
	all, err := r.list(served)
	if err != nil {
		return nil, err
	}
	if r.seen.events == nil {
		r.seen.events = map[string]int64{}
	}
	for _, o := range all {
		text := func(path ...string) string { s, _, _ := unstructured.NestedString(o.Object, path...); return s }
		count, repeated, _ := unstructured.NestedInt64(o.Object, "series", "count")
		if !repeated {
			count = 1
		}
		more := count - r.seen.events[string(o.GetUID())]
		r.seen.events[string(o.GetUID())] = count
		if more == 0 {
			continue
		}
		object := text("regarding", "kind") + "/" + text("regarding", "name")
		if found := r.kind(text("regarding", "apiVersion"), text("regarding", "kind")); found != "" {
			object = nameOf(found, text("regarding", "namespace"), text("regarding", "name"))
		}
		out = append(out, event{object, text("type"), text("reason"), text("note"), more})
	}
	return out, nil
}

// kind returns the resource of a kind; empty if there is none.
func (r *runner) kind(apiVersion, kind string) string {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	served, found := r.server.LookupKind(o.GroupVersionKind())
	if !found {
		return ""
	}
	return served.GVR.Resource
}

// expectEvents checks the Events since the last expectation.
func (r *runner) expectEvents(e *expectation) {
	all, err := r.events()
	if err != nil {
		r.fail(e.at, "reading Events: "+err.Error(), "")
		return
	}
	for i, want := range e.Events {
		at := e.at.Key("events").Index(i)
		name, err := r.normal(want.Object)
		if err != nil {
			r.fail(at, err.Error(), "")
			continue
		}
		var each []event
		for _, one := range all {
			for range one.times {
				each = append(each, event{one.object, one.kind, one.reason, one.message, 1})
			}
		}
		tally(r, at, "Event "+described("object", want.Object, "type", string(want.Type), "reason", want.Reason, "message", want.Message), want.counted, each, func(v event) bool {
			return is(name, v.object) && is(want.Reason, v.reason) && is(string(want.Type), v.kind) && strings.Contains(v.message, want.Message)
		})
	}
}
