// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// everything is an operator that makes each kind of write.
func everything(foo *dsl.Resource, j *journal) {
	foo.Owns(deployments)
	foo.On(both(), "size", j.Note("size"), dsl.Field("spec.size"))
	foo.On(both(), "flaky", j.Note("flaky", temporary(late), succeeds))
	foo.OnReconcile("child", j.Note("child", keepsChild))
	foo.On(both(), "report", j.Note("report", reports))
	foo.OnDelete("left", j.Note("left", func(ctx context.Context, r *dsl.Request) error {
		return r.Children.Delete(ctx, deployments, r.Object.GetName())
	}))
}

// life is what happens to web in a test of crashes.
var life = []func(s *stage){
	func(s *stage) { s.Create(web) },
	func(s *stage) { s.size(2) },
	func(s *stage) { s.set("blue", "spec", "color") },
	func(s *stage) { s.remove() },
}

// TestCrashes is law 2: a crash after any write skips no handler and ends where no crash ends.
func TestCrashes(t *testing.T) {
	for at, happens := range life {
		var want string
		perform(t, scenario{everything, func(s *stage) {
			want = s.live(at, happens, 0)
			if n := len(s.Process.Writes()); n < 2 && at != 3 {
				s.t.Errorf("step %d: %d writes to crash after", at, n)
			}
		}})
		for after := 1; after <= 5; after++ {
			t.Run(fmt.Sprintf("in step %d after write %d", at, after), func(t *testing.T) {
				perform(t, scenario{everything, func(s *stage) {
					if diff := cmp.Diff(want, s.live(at, happens, after)); diff != "" {
						s.t.Errorf("the end (-without a crash +with one):\n%s", diff)
					}
				}})
			})
		}
	}
}

// live lets web live up to a step, which happens to a process that crashes after so many writes,
// and tells how it ends.
func (s *stage) live(at int, happens func(*stage), after int) string {
	s.Launch()
	for _, before := range life[:at] {
		before(s)
		s.Advance(time.Hour)
	}
	s.Forget()
	s.Process.CrashAfter(after)
	happens(s)
	s.Advance(2 * late)
	if after > 0 {
		s.Process.Kill()
		s.Process.Restart()
	}
	s.Advance(time.Hour)
	called := s.Take()
	slices.Sort(called)
	return fmt.Sprintf("called %v\nweb %s\nchild %s", slices.Compact(handlersIn(called)), contentOf(s.web()), contentOf(s.Get(deployments, "default", "web")))
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

// TestSuccessIsRemembered is law 2: what was recorded is not repeated.
func TestSuccessIsRemembered(t *testing.T) {
	flaky := func(foo *dsl.Resource, j *journal) {
		foo.On(both(), "steady", j.Note("steady"))
		foo.On(both(), "flaky", j.Note("flaky", temporary(time.Hour), temporary(time.Hour), succeeds))
	}
	scenarios(t, map[string]scenario{
		"a success is not repeated after a restart, and a wait goes on": {flaky, func(s *stage) {
			s.Launch()
			s.Create(web)
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
		"a write whose answer is lost is not repeated": {flaky, func(s *stage) {
			s.Launch()
			s.LoseNext("patch", foos)
			s.Create(web)
			s.Called("steady create", "flaky create")
			s.Advance(time.Minute)
			s.Called()
			s.Wrote("patch foos default/web")
		}},
		"a write that did not get there is made up for, and what wanted nothing of the object is not called again": {flaky, func(s *stage) {
			s.Launch()
			s.FailNext("patch", foos, errAgain)
			s.Create(web)
			s.Called("steady create", "flaky create")
			s.Advance(time.Minute)
			s.Called()
			if got := s.Process.Writes(); len(got) != 1 {
				s.t.Errorf("writes %v", got)
			}
		}},
		"one that failed for good is not tried again until what it looks at changes": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "broken", j.Note("broken", fails(dsl.Permanent(errAgain)), succeeds), dsl.Field("spec.size"))
				foo.On(both(), "other", j.Note("other"))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("broken create", "other create")
				s.Process.Restart()
				s.set("blue", "spec", "color")
				s.Called("other update")
				s.size(2)
				s.Called("broken update", "other update")
			},
		},
	})
}
