// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// statesVariable makes this test binary run the operator in states that tests kill, in the namespace it names.
const statesVariable = "E2E_STATES_NAMESPACE"

// valueIs holds while spec.value is a value.
func valueIs(value string) dsl.Predicate {
	return func(s *dsl.Subject) (bool, error) { return spec(s.Object, "value") == value, nil }
}

// leaves makes a ConfigMap, another one each time that it runs.
func leaves(what string) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		name := fmt.Sprintf("%s-%s-%d", r.Object.GetName(), what, time.Now().UnixNano())
		made := configMap(name, "")
		made["metadata"].(map[string]any)["namespace"] = r.Object.GetNamespace()
		_, err := r.Client.Create(ctx, made)
		return err
	}
}

// inStates is a machine that goes where spec.value says, and sees objects off.
func inStates() dsl.Machine {
	return dsl.Machine{
		States: []dsl.State{
			{Name: "Pending", Transitions: []dsl.Transition{{To: "Running", When: valueIs("b"), Why: "it is b"}, {To: "Cancelled", Manual: true}}},
			{Name: "Running", Enter: leaves("run"), Transitions: []dsl.Transition{{To: "Finished", When: valueIs("c"), Why: "it is c"}}},
			{Name: "Finished", Terminal: true},
			{Name: "Cancelled", Terminal: true, Failed: true},
		},
		Deletion: []dsl.State{
			{Name: "Draining", Enter: leaves("drain"), Transitions: []dsl.Transition{{To: "Gone", When: valueIs("gone")}}},
			{Name: "Gone", Terminal: true},
		},
	}
}

// mortalInStates is an operator with that machine.
func mortalInStates(ns string) *dsl.Operator {
	op := dsl.New("law")
	op.Scope.Namespaces = []string{ns}
	op.Resource(works, func(r *dsl.Resource) { r.Machine(inStates()) })
	return op
}

// stands reports whether an object is in a state, and whatever is done on entering it is done and written.
func stands(state string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		entered := status(o, "stateEntered") != "" || state != "Running" && state != "Draining"
		return status(o, "state") == state && entered
	}
}

// wayOf is the way that an object went, as its status shows it.
func wayOf(o *unstructured.Unstructured) (way []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "history")
	for _, item := range list {
		v := item.(map[string]any)
		way = append(way, fmt.Sprint(v["from"], " ", v["to"], " ", v["why"]))
	}
	return way
}

// liveInStates leads a work through its life under an operator that is killed after so many of its writes, 0 for never. It
// returns how many there were, and how often actions were done.
func liveInStates(t *testing.T, after int) (writes int, done map[string]int) {
	t.Helper()
	s := newStage(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launch := cluster.Launch{Program: program, Config: s.proxy.Config(), Env: []string{statesVariable + "=" + s.ns}}
	first := plane.Operator(t, launch)
	var crashed <-chan struct{}
	if after > 0 {
		crashed = s.proxy.CrashAfter(after, first.Kill)
	}
	follow := func(what string, met func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
		t.Helper()
		var found *unstructured.Unstructured
		waitFor(t, what, func() bool {
			select {
			case <-crashed:
				crashed = nil
				launch.Config = s.user.Config()
				plane.Operator(t, launch)
			default:
			}
			found = s.works.Get(t, "w")
			return met(found)
		})
		return found
	}
	s.works.Create(t, work("w", "a"))
	follow("the beginning", stands("Pending"))
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	follow("the run", stands("Running"))
	s.works.Patch(t, "w", `{"spec":{"value":"c"}}`)
	finished := follow("the end of the run", stands("Finished"))
	if diff := cmp.Diff([]string{"Pending Running it is b", "Running Finished it is c"}, wayOf(finished)); diff != "" {
		t.Errorf("the way (-want +got):\n%s", diff)
	}
	s.works.Delete(t, "w")
	follow("the deletion", stands("Draining"))
	s.works.Patch(t, "w", `{"spec":{"value":"gone"}}`)
	follow("the end", func(o *unstructured.Unstructured) bool { return o == nil })
	done = map[string]int{}
	for _, made := range s.maps.List(t) {
		if parts := strings.Split(made.GetName(), "-"); parts[0] == "w" {
			done[parts[1]]++
		}
	}
	return len(s.proxy.Requests(cluster.On("write", "*"))), done
}

// TestMachineCrashAtEachWrite kills the process after each write of a life in states. No transition is lost or taken twice,
// and an action is done once more only where the crash fell between it and its being written down.
func TestMachineCrashAtEachWrite(t *testing.T) {
	t.Parallel()
	writes, done := liveInStates(t, 0)
	if diff := cmp.Diff(map[string]int{"run": 1, "drain": 1}, done); diff != "" || writes < 8 {
		t.Fatalf("what was done without a crash, with %d writes (-want +got):\n%s", writes, diff)
	}
	for n := 1; n <= writes; n++ {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			t.Parallel()
			_, done := liveInStates(t, n)
			if done["run"] < 1 || done["drain"] < 1 || done["run"]+done["drain"] > 3 {
				t.Errorf("what was done: %v", done)
			}
		})
	}
}

// TestMachineKeepsItsTime holds that a time-out goes on through a restart.
func TestMachineKeepsItsTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const most = 6 * time.Second
	define := func(r *dsl.Resource) {
		r.Machine(dsl.Machine{States: []dsl.State{
			{Name: "Running", Enter: s.Note("start", nil), Stay: &dsl.Stay{AtMost: most, Then: "Late"}, Transitions: []dsl.Transition{{To: "Done", When: valueIs("done")}}},
			{Name: "Done", Terminal: true}, {Name: "Late", Terminal: true, Failed: true},
		}})
	}
	running := s.play(t, define)
	s.works.Create(t, work("w", "a"))
	began := s.works.Await(t, "w", "its beginning", stands("Running"))
	<-time.After(most / 2)
	s.proxy.Sever()
	if err := running.Crash(t); err != nil {
		t.Errorf("crashing: %v", err)
	}
	s.proxy.Restore()
	s.play(t, define)
	late := s.works.Await(t, "w", "its end", stands("Late"))
	times := map[string]time.Time{}
	for key, text := range map[string]string{"since": status(began, "stateSince"), "until": status(late, "stateSince")} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		times[key] = at
	}
	if took := times["until"].Sub(times["since"]); took < most || took > most+5*time.Second {
		t.Errorf("it was in the state for %v, want %v", took, most)
	}
	if calls := s.Of("start", "w"); len(calls) != 1 {
		t.Errorf("it was entered %d times", len(calls))
	}
}

// TestMachineHeedsAPerson holds what the annotation goto does, with an API server's own ways of writing status and metadata.
func TestMachineHeedsAPerson(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.play(t, func(r *dsl.Resource) { r.Machine(inStates()) })
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "its beginning", stands("Pending"))
	wish := func(state string) {
		s.works.Patch(t, "w", fmt.Sprintf(`{"metadata":{"annotations":{"law.handwerk.dev/goto":%q}}}`, state))
	}
	heeded := func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["law.handwerk.dev/goto"] == "" }
	wish("Finished")
	if w := s.works.Await(t, "w", "the refusal", heeded); !stands("Pending")(w) {
		t.Errorf("the state is %s", status(w, "state"))
	}
	wish("Cancelled")
	w := s.works.Await(t, "w", "the state", func(o *unstructured.Unstructured) bool { return heeded(o) && stands("Cancelled")(o) })
	if diff := cmp.Diff([]string{"Pending Cancelled a person asked for it"}, wayOf(w)); diff != "" {
		t.Errorf("the way (-want +got):\n%s", diff)
	}
	events := plane.Objects("events.v1.events.k8s.io", s.ns)
	waitFor(t, "the Events", func() bool {
		var reasons []string
		for _, e := range events.List(t) {
			reason, _, _ := unstructured.NestedString(e.Object, "reason")
			reasons = append(reasons, reason)
		}
		return containsAll(strings.Join(reasons, " "), "GotoRefused", "Cancelled")
	})
}
