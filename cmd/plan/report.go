// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// Action is what happens to an object.
type Action string

// The actions, in the order in which they are printed.
const (
	// Deleted: the object goes, or waits with a deletionTimestamp for its finalizers.
	Deleted Action = "deleted"
	// Recreated: an object of this name goes, and another one takes its place.
	Recreated Action = "recreated"
	// Orphaned: the object stays, and its owner no longer has it.
	Orphaned Action = "orphaned"
	// Changed: fields of the object change.
	Changed Action = "changed"
	// Created: the object is new.
	Created Action = "created"
	// Marked: only annotations change in which the operator keeps its state.
	Marked Action = "marked"
)

// Actions returns all actions in the order in which they are printed.
func Actions() []Action { return []Action{Deleted, Recreated, Orphaned, Changed, Created, Marked} }

// Report is a plan.
type Report struct {
	// Operator is the operator's name.
	Operator string `json:"operator"`
	// Objects is the number of objects that were read.
	Objects int `json:"objects"`
	// Rested reports whether the operator came to rest, and After is the virtual time, in seconds, until it did or the
	// time was over.
	Rested bool    `json:"rested"`
	After  float64 `json:"afterSeconds"`
	// Summary counts the changes by their action.
	Summary map[Action]int `json:"summary"`
	// Changes has an entry for each object that differs, sorted by action, kind, namespace and name.
	Changes []Change `json:"changes"`
	// Handlers are the handlers that ran, with their causes.
	Handlers []HandlerRun `json:"handlers,omitempty"`
	// Calls are the functions in Go that would be called, and Unknown the objects for which: the plan does not know what
	// follows from the results.
	Calls   []Call   `json:"calls,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	// Unready are the objects that become not ready.
	Unready []Unready `json:"unready,omitempty"`
	// Refused are the objects that a new rule about requests would refuse at their next change.
	Refused []Refusal `json:"refused,omitempty"`
	// Rights are the rights that change, if the plan is against another configuration.
	Rights *Rights `json:"rights,omitempty"`
	// Failing are the handlers that fail at the end.
	Failing []Failure `json:"failing,omitempty"`
	// Warnings say what the plan could not take into account.
	Warnings []string `json:"warnings,omitempty"`
}

// Change is the difference that the operator makes to one object.
type Change struct {
	Action     Action `json:"action"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Fields are the fields that differ, sorted by path. A created object has the fields that the operator sends.
	Fields []Field `json:"fields,omitempty"`
	// Effect says what follows from the change, as in "its Pods restart". Mostly empty.
	Effect string `json:"effect,omitempty"`
}

// Field is a field that differs.
type Field struct {
	// Path is the path of the field, as in spec.template.spec.containers[0].image.
	Path string `json:"path"`
	// Before and After are the values. Nil means that the field is absent. Values of Secrets are hidden.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
}

// HandlerRun counts the objects for which a handler ran, first of all for a cause.
type HandlerRun struct {
	// Handler is the resource and the id, as in websites/deployment.
	Handler string `json:"handler"`
	Cause   string `json:"cause"`
	Objects int    `json:"objects"`
}

// Call counts the objects for which a function in Go would be called; 0 means that it is for the operator as a whole.
type Call struct {
	Function string `json:"function"`
	Objects  int    `json:"objects"`
}

// Rights are rights of the operator's account, as in "list pods".
type Rights struct {
	Added   []string `json:"added,omitempty"`
	Dropped []string `json:"dropped,omitempty"`
}

// Unready is an object that becomes not ready.
type Unready struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Condition is the condition that says so, as in Ready=False.
	Condition string `json:"condition"`
}

// Failure is a handler that fails at the end, or a part of the operator that is not ready.
type Failure struct {
	// What names it as /readyz does, as in failing/websites.v1.example.com/shop/web.
	What    string `json:"what"`
	Message string `json:"message"`
}

// IsEmpty reports whether the operator would change nothing.
func (r *Report) IsEmpty() bool { return len(r.Changes) == 0 }

// count counts the changes.
func (r *Report) count() {
	r.Summary = map[Action]int{}
	for _, c := range r.Changes {
		r.Summary[c.Action]++
	}
}

// findUnready collects the objects that become not ready.
func (r *Report) findUnready() {
	for _, c := range r.Changes {
		for _, f := range c.Fields {
			ready, stalled := f.Path == "status.conditions[Ready].status", f.Path == "status.conditions[Stalled].status"
			if ready && f.After != "True" && f.After != nil || stalled && f.After == "True" {
				kind := strings.TrimSuffix(strings.TrimPrefix(f.Path, "status.conditions["), "].status")
				r.Unready = append(r.Unready, Unready{c.Kind, c.Namespace, c.Name, fmt.Sprintf("%s=%v", kind, f.After)})
			}
		}
	}
}
