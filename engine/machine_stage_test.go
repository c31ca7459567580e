// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

const gotoKey = "op.handwerk.dev/goto"

// sizeOver holds while web is larger than n.
func sizeOver(n int64) dsl.Predicate {
	return func(s *dsl.Subject) (bool, error) {
		size, _, err := unstructured.NestedInt64(s.Object.Object, "spec", "size")
		return size > n, err
	}
}

// job is a machine with most that there is: it starts with what size is more than 1, runs for an hour at most, and is done with
// what is more than 2.
func job(j *journal) dsl.Machine {
	return dsl.Machine{
		States: []dsl.State{
			{Name: "Pending", Condition: "Scheduled", Doc: "Waits.", Transitions: []dsl.Transition{
				{To: "Running", When: sizeOver(1), Why: "it is large"}, {To: "Cancelled", Manual: true},
			}},
			{Name: "Running", Enter: j.Note("start"), During: j.Note("watch"), Stay: &dsl.Stay{AtMost: time.Hour, Then: "Failed"}, Transitions: []dsl.Transition{
				{To: "Finished", When: sizeOver(2), Why: "it is larger"},
			}, Retries: &dsl.Budget{AtMost: 2, Then: "Failed"}},
			{Name: "Finished", Terminal: true},
			{Name: "Failed", Terminal: true, Failed: true, Transitions: []dsl.Transition{{To: "Pending", Manual: true}}},
			{Name: "Cancelled", Terminal: true, Failed: true},
		},
		AllowCycles: true,
	}
}

// oneMachine is an operator with that machine.
func oneMachine(foo *dsl.Resource, j *journal) { foo.Machine(job(j)) }

// open starts the operator with a resource that has conditions.
func (s *stage) open() {
	s.t.Helper()
	s.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", addConditions)
	s.Launch()
}

// in returns where web is, with what is wrong with its book.
func (s *stage) in(book ...string) string {
	s.t.Helper()
	o := s.web()
	if o == nil {
		return "gone"
	}
	tree, _, _ := unstructured.NestedMap(o.Object, append([]string{"status"}, book...)...)
	if tree["stateUID"] != string(o.GetUID()) {
		return "of another"
	}
	return tree["state"].(string)
}

// is checks where web is.
func (s *stage) is(want string, book ...string) {
	s.t.Helper()
	s.Settle()
	if got := s.in(book...); got != want {
		s.t.Errorf("the state is %s, want %s", got, want)
	}
}

// history returns the transitions that web's status has.
func (s *stage) history(book ...string) (out []string) {
	s.t.Helper()
	list, _, _ := unstructured.NestedSlice(s.web().Object, append(append([]string{"status"}, book...), "history")...)
	for _, item := range list {
		v := item.(map[string]any)
		out = append(out, fmt.Sprintf("%s %s %s", v["from"], v["to"], v["why"]))
	}
	return out
}

// condition returns a condition of web: its status, reason and message.
func (s *stage) condition(kind string) string {
	s.t.Helper()
	list, _, _ := unstructured.NestedSlice(s.web().Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == kind {
			return strings.TrimSpace(fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"]))
		}
	}
	return ""
}

// said checks a condition.
func (s *stage) said(kind, want string) {
	s.t.Helper()
	s.Settle()
	if got := s.condition(kind); got != want {
		s.t.Errorf("condition %s is %q, want %q", kind, got, want)
	}
}

// told returns the Events, without what is the same in all.
func (s *stage) told() (out []string) {
	s.t.Helper()
	s.Settle()
	for _, e := range s.Events() {
		out = append(out, e.Type+" "+e.Reason+" "+e.Note)
	}
	slices.Sort(out)
	return out
}

// goes annotates web with a person's wish.
func (s *stage) goes(state string) {
	s.t.Helper()
	s.set(state, "metadata", "annotations", gotoKey)
	s.Settle()
}
