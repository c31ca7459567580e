// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const gotoKey = "op.handwerk.dev/goto"

// job is a machine with most that there is: it starts with what size is more than 1, runs for an hour at most, and is done with
// what is more than 2.
func job(j *kit.Journal) dsl.Machine {
	return dsl.Machine{
		States: []dsl.State{
			{Name: "Pending", Condition: "Scheduled", Doc: "Waits.", Transitions: []dsl.Transition{
				{To: "Running", When: scene.SizeOver(1), Why: "it is large"}, {To: "Cancelled", Manual: true},
			}},
			{Name: "Running", Enter: j.Note("start"), During: j.Note("watch"), Stay: &dsl.Stay{AtMost: time.Hour, Then: "Failed"}, Transitions: []dsl.Transition{
				{To: "Finished", When: scene.SizeOver(2), Why: "it is larger"},
			}, Retries: &dsl.Budget{AtMost: 2, Then: "Failed"}},
			{Name: "Finished", Terminal: true},
			{Name: "Failed", Terminal: true, Failed: true, Transitions: []dsl.Transition{{To: "Pending", Manual: true}}},
			{Name: "Cancelled", Terminal: true, Failed: true},
		},
		AllowCycles: true,
	}
}

// oneMachine is an operator with that machine.
func oneMachine(foo *dsl.Resource, j *kit.Journal) { foo.Machine(job(j)) }

// launchWithConditions starts the operator with a resource that has conditions.
func launchWithConditions(s *scene.Stage) {
	s.T.Helper()
	s.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", scene.AddConditions)
	s.Launch()
}

// history returns the transitions that web's status has.
func history(s *scene.Stage, book ...string) (out []string) {
	s.T.Helper()
	list, _, _ := unstructured.NestedSlice(s.Web().Object, append(append([]string{"status"}, book...), "history")...)
	for _, item := range list {
		v := item.(map[string]any)
		out = append(out, fmt.Sprintf("%s %s %s", v["from"], v["to"], v["why"]))
	}
	return out
}

// conditionText returns a condition of web: its status, reason and message.
func conditionText(s *scene.Stage, kind string) string {
	s.T.Helper()
	c := scene.Condition(s.Web(), kind)
	if c == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"]))
}

// wantCondition checks a condition.
func wantCondition(s *scene.Stage, kind, want string) {
	s.T.Helper()
	s.Settle()
	if got := conditionText(s, kind); got != want {
		s.T.Errorf("condition %s is %q, want %q", kind, got, want)
	}
}

// eventTexts returns the Events, without what is the same in all.
func eventTexts(s *scene.Stage) (out []string) {
	s.T.Helper()
	s.Settle()
	for _, e := range s.Events() {
		out = append(out, e.Type+" "+e.Reason+" "+e.Note)
	}
	slices.Sort(out)
	return out
}

// requestState annotates web with a person's wish.
func requestState(s *scene.Stage, state string) {
	s.T.Helper()
	s.Set(state, "metadata", "annotations", gotoKey)
	s.Settle()
}
