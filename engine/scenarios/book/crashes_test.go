// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// everything is an operator that makes each kind of write.
func everything(foo *dsl.Resource, j *kit.Journal) {
	foo.Owns(scene.Deployments)
	foo.On(scene.CreateAndUpdate(), "size", j.Note("size"), dsl.Field("spec.size"))
	foo.On(scene.CreateAndUpdate(), "flaky", j.Note("flaky", scene.RetriesAfter(scene.Late), scene.Succeeds))
	foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
	foo.On(scene.CreateAndUpdate(), "report", j.Note("report", scene.Reports))
	foo.OnDelete("left", j.Note("left", func(ctx context.Context, r *dsl.Request) error {
		return r.Children.Delete(ctx, scene.Deployments, r.Object.GetName())
	}))
}

// life is what happens to web in a test of crashes.
var life = []func(s *scene.Stage){
	func(s *scene.Stage) { s.Create(scene.Web) },
	func(s *scene.Stage) { s.Resize(2) },
	func(s *scene.Stage) { s.Set("blue", "spec", "color") },
	func(s *scene.Stage) { s.Remove() },
}

// TestACrashSkipsNoHandler is law 2: a crash after any write skips no handler and ends where no crash ends.
func TestACrashSkipsNoHandler(t *testing.T) {
	for at, happens := range life {
		var want string
		scene.Play(t, scene.Scenario{Operator: everything, Play: func(s *scene.Stage) {
			want = liveWithCrash(s, at, happens, 0)
			if n := len(s.Process.Writes()); n < 2 && at != 3 {
				s.T.Errorf("step %d: %d writes to crash after", at, n)
			}
		}})
		for after := 1; after <= 5; after++ {
			t.Run(fmt.Sprintf("in step %d after write %d", at, after), func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: everything, Play: func(s *scene.Stage) {
					if diff := cmp.Diff(want, liveWithCrash(s, at, happens, after)); diff != "" {
						s.T.Errorf("the end (-without a crash +with one):\n%s", diff)
					}
				}})
			})
		}
	}
}

// liveWithCrash lets web live up to a step, which happens to a process that crashes after so many writes,
// and returns how it ends.
func liveWithCrash(s *scene.Stage, at int, happens func(*scene.Stage), after int) string {
	s.Launch()
	for _, before := range life[:at] {
		before(s)
		s.Advance(time.Hour)
	}
	s.Forget()
	s.Process.CrashAfter(after)
	happens(s)
	s.Advance(2 * scene.Late)
	if after > 0 {
		s.Process.Kill()
		s.Process.Restart()
	}
	s.Advance(time.Hour)
	called := s.Take()
	slices.Sort(called)
	return fmt.Sprintf("called %v\nweb %s\nchild %s", slices.Compact(handlersIn(called)), contentOf(s.Web()), contentOf(s.Get(scene.Deployments, "default", "web")))
}

// handlersIn are the handlers that were called for a lasting cause, sorted.
func handlersIn(lines []string) []string {
	var out []string
	for _, line := range lines {
		var id, cause string
		_, _ = fmt.Sscan(line, &id, &cause)
		if cause != string(dsl.Resume) && cause != string(dsl.Child) && id != "child" {
			out = append(out, id+" "+cause)
		}
	}
	return out
}

// contentOf is what an object is, without what differs from run to run.
func contentOf(o *unstructured.Unstructured) string {
	switch {
	case o == nil:
		return "gone"
	case o.GetKind() != "Foo":
		return fmt.Sprint(o.Object["spec"])
	}
	var bases []string
	for key := range o.GetAnnotations() {
		bases = append(bases, key)
	}
	slices.Sort(bases)
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		delete(c.(map[string]any), "lastTransitionTime")
	}
	return fmt.Sprint(o.Object["spec"], o.Object["status"].(map[string]any)["size"], conditions, bases, o.GetFinalizers())
}

// TestARecordedSuccessIsNotRepeated is law 2: what was recorded is not repeated.
func TestARecordedSuccessIsNotRepeated(t *testing.T) {
	flaky := func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(scene.CreateAndUpdate(), "steady", j.Note("steady"))
		foo.On(scene.CreateAndUpdate(), "flaky", j.Note("flaky", scene.RetriesAfter(time.Hour), scene.RetriesAfter(time.Hour), scene.Succeeds))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a success is not repeated after a restart, and a wait goes on": {Operator: flaky, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("steady create", "flaky create")
			s.Advance(10 * time.Minute)
			s.Process.Kill()
			s.Process.Restart()
			s.Called()
			s.Advance(49 * time.Minute)
			s.Called()
			s.Advance(time.Minute)
			s.Called("flaky create 2")
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called("flaky create 3")
			s.Process.Restart()
			s.Called()
		}},
		"a write whose answer is lost is not repeated": {Operator: flaky, Play: func(s *scene.Stage) {
			s.Launch()
			s.LoseNext("patch", scene.Foos)
			s.Create(scene.Web)
			s.Called("steady create", "flaky create")
			s.Advance(time.Minute)
			s.Called()
			s.Wrote("patch foos default/web")
		}},
		"a write that did not get there is made up for, and what wanted nothing of the object is not called again": {Operator: flaky, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("patch", scene.Foos, scene.ErrAgain)
			s.Create(scene.Web)
			s.Called("steady create", "flaky create")
			s.Advance(time.Minute)
			s.Called()
			if got := s.Process.Writes(); len(got) != 1 {
				s.T.Errorf("writes %v", got)
			}
		}},
		"one that failed for good is not tried again until what it looks at changes": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "broken", j.Note("broken", scene.Fails(dsl.Permanent(scene.ErrAgain)), scene.Succeeds), dsl.Field("spec.size"))
				foo.On(scene.CreateAndUpdate(), "other", j.Note("other"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("broken create", "other create")
				s.Process.Restart()
				s.Set("blue", "spec", "color")
				s.Called("other update")
				s.Resize(2)
				s.Called("broken update", "other update")
			},
		},
	})
}
