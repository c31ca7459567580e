// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestASpentBudgetMovesTheObject holds that a budget that is used up takes the object away, whatever becomes of the write
// that says so.
func TestASpentBudgetMovesTheObject(t *testing.T) {
	all := map[string]scene.Scenario{}
	for name, failure := range map[string]error{"one failure too many": scene.ErrAgain, "a failure that is final": dsl.Permanent(scene.ErrAgain)} {
		for most := range 3 {
			spends := stampedMachine(&stamps{}, func(st *dsl.State) {
				st.Transitions = []dsl.Transition{{To: "Finished", When: scene.SizeOver(5)}}
				st.Retries = &dsl.Budget{AtMost: most, Then: "Failed"}
				st.During = func(_ context.Context, r *dsl.Request) error {
					if n, _ := scene.ValueAt(r.Object, "status.stateFailures").(int64); n > int64(most) {
						return nil // when it is too late
					}
					return failure
				}
			})
			all[fmt.Sprintf("%s, of %d, and errors of the server", name, most)] = scene.Scenario{Operator: spends, Play: spentThroughErrors}
			for after := range 4 + 2*most { // each failure is a write or two
				all[fmt.Sprintf("%s, of %d, and a crash after write %d", name, most, after)] = scene.Scenario{Operator: spends, Play: func(s *scene.Stage) {
					launchWithWeb(s)
					s.Process.CrashAfter(after + 1)
					s.Resize(2)
					s.Advance(5 * time.Minute)
					s.Process.Kill()
					s.Process.Restart()
					s.Advance(5 * time.Minute)
					s.WantState("Failed")
				}}
			}
		}
	}
	scene.PlayAll(t, all)
}

// spentThroughErrors has the server fail when the transition is written.
func spentThroughErrors(s *scene.Stage) {
	launchWithWeb(s)
	failed := 0
	s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
		if scene.ValueAt(o, "status.state") != "Failed" || failed == 2 {
			return nil
		}
		failed++
		return apierrors.NewInternalError(scene.ErrAgain)
	})
	s.Resize(2)
	s.Advance(10 * time.Minute)
	s.WantState("Failed")
	if got := history(s); !strings.HasPrefix(got[len(got)-1], "Running Failed during failed ") || !strings.HasSuffix(got[len(got)-1], ": not yet") {
		s.T.Errorf("history %v", got)
	}
}

// TestAMachineWritesLittleWithoutAStatusSubresource holds that writes are few also where each one makes a new generation.
func TestAMachineWritesLittleWithoutAStatusSubresource(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", NoStatus: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			m := job(&s.Journal)
			m.States[1].During = s.Note("watch", func(_ context.Context, r *dsl.Request) error { r.RunAgain(10 * time.Minute); return nil })
			m.States[1].Stay.AtMost = 24 * time.Hour
			foo.Machine(m)
		})
		launchWithConditions(s)
		s.Create(scene.Web)
		s.Resize(2)
		s.WantState("Running")
		s.Forget()
		s.Advance(55 * time.Minute)
		s.Called("watch again", "watch again", "watch again", "watch again", "watch again")
		s.Process.Restart()
		s.Advance(time.Minute)
		s.Wrote()
		list, _, _ := unstructured.NestedSlice(s.Web().Object, "status", "conditions")
		for _, item := range list {
			if of, has := item.(map[string]any)["observedGeneration"]; has {
				t.Errorf("a condition is of generation %v, and the object has %d: who waits for it waits without end", of, s.Web().GetGeneration())
			}
		}
		requestState(s, "Failed")
		s.WantState("Failed")
	})
}
