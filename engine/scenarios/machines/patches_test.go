// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// stamps are what an action wants of its object outside the status: something else each time.
type stamps struct {
	mu   sync.Mutex
	last map[string]string
	n    int
}

// put returns an action that stamps its object.
func (p *stamps) put(name string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.last == nil {
			p.last = map[string]string{}
		}
		p.n++
		p.last[name] = fmt.Sprint("stamp ", p.n)
		r.Patch.Annotate("example.com/"+name, p.last[name])
		return nil
	}
}

// wantStamps checks that an object has the last stamp of each action.
func wantStamps(s *scene.Stage, p *stamps, o *unstructured.Unstructured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == 0 {
		s.T.Error("there are no stamps")
	}
	for name, want := range p.last {
		if got := o.GetAnnotations()["example.com/"+name]; got != want {
			s.T.Errorf("%s wanted %q, and the object that is in %s has %q", name, want, scene.ValueAt(o, "status.state"), got)
		}
	}
}

// wantStampsAtEachWrite checks each write after which web is in a state: whatever is written later, a crash may take away.
func wantStampsAtEachWrite(s *scene.Stage, p *stamps, state string) {
	s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
		if scene.ValueAt(o, "status.state") == state {
			wantStamps(s, p, o)
		}
		return nil
	})
}

// stampedMachine is the machine of job with actions that want something else of the object each time.
func stampedMachine(p *stamps, change func(s *dsl.State)) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		m := job(j)
		running := &m.States[1]
		running.Retries = nil
		running.Enter, running.During = j.Note("start", p.put("enter")), j.Note("watch", p.put("during"))
		running.Transitions = []dsl.Transition{{To: "Finished", Why: "it is done"}}
		change(running)
		foo.Machine(m)
	}
}

// TestTheChangesOfAStateAreThereWhenItIsLeft holds that what the actions of a state want of the object is there when the
// state is left, whichever write the process crashes after, and whatever has the object leave.
func TestTheChangesOfAStateAreThereWhenItIsLeft(t *testing.T) {
	ways := map[string]struct {
		change func(s *dsl.State)
		leave  func(s *scene.Stage)
		want   string
	}{
		"a transition that is taken at once": {func(*dsl.State) {}, func(s *scene.Stage) { s.Resize(2) }, "Finished"},
		"a transition whose condition holds later": {func(st *dsl.State) {
			st.Transitions = []dsl.Transition{{To: "Finished", When: scene.SizeOver(3)}}
		}, func(s *scene.Stage) {
			s.Resize(2)
			s.Settle()
			s.Resize(4)
		}, "Finished"},
		"a time that is over": {func(st *dsl.State) {
			st.Transitions = []dsl.Transition{{To: "Finished", When: scene.SizeOver(3)}}
			st.Stay.AtMost = time.Second
		}, func(s *scene.Stage) { s.Resize(2) }, "Failed"},
		"a budget that During uses up": {func(st *dsl.State) {
			st.During, st.Retries = scene.Fails(dsl.Permanent(scene.ErrAgain)), &dsl.Budget{Then: "Failed"}
		}, func(s *scene.Stage) { s.Resize(2) }, "Failed"},
	}
	for name, way := range ways {
		for after := range 8 {
			t.Run(fmt.Sprintf("%s, after write %d", name, after), func(t *testing.T) {
				p := &stamps{}
				scene.Play(t, scene.Scenario{Operator: stampedMachine(p, way.change), Play: func(s *scene.Stage) {
					launchWithWeb(s)
					wantStampsAtEachWrite(s, p, way.want)
					s.Process.CrashAfter(after)
					way.leave(s)
					s.Advance(5 * time.Second)
					if after > 0 {
						s.Process.Kill()
						s.Process.Restart()
					}
					s.Advance(time.Minute)
					s.WantState(way.want)
				}})
			})
		}
	}
}

// TestTheChangesOfAStateHoldNothingUp holds that what actions want of the object holds nothing up, though it is written
// before a transition.
func TestTheChangesOfAStateHoldNothingUp(t *testing.T) {
	p := &stamps{} // of all
	stays := func(st *dsl.State) { st.Transitions = []dsl.Transition{{To: "Finished", When: scene.SizeOver(3)}} }
	scene.PlayAll(t, map[string]scene.Scenario{
		"During that wants something else each time is run once for each look": {Operator: stampedMachine(p, stays), Play: func(s *scene.Stage) {
			launchWithWeb(s)
			s.Resize(2)
			s.Called("start again", "watch again")
			s.Set("blue", "spec", "color")
			s.Called("watch update")
			wantStamps(s, p, s.Web())
			s.Advance(59 * time.Minute)
			s.Called()
			s.Wrote("patch foos/status default/web", "patch foos default/web", "patch foos/status default/web", // entered
				"patch foos/status default/web", "patch foos default/web") // the new generation, and the new stamp
		}},
		"an object whose looks come without an end leaves the state": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			stampedMachine(p, func(st *dsl.State) {
				stays(st)
				st.Enter = scene.KeepsDeployment
			})(foo, j)
		}, Play: func(s *scene.Stage) {
			launchWithWeb(s)
			s.Resize(2)
			s.WantState("Running")
			for n := range int64(185) {
				s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, n, "status", "replicas") })
				s.Advance(20 * time.Second)
			}
			if n := len(s.Of("watch", "web")); n < 180 {
				s.T.Errorf("During was called %d times", n)
			}
			s.WantState("Failed")
		}},
		"what During asks for beside it is kept": {Operator: stampedMachine(p, func(st *dsl.State) {
			stays(st)
			stamp := st.During
			st.During = func(c context.Context, r *dsl.Request) error {
				r.RunAgain(10 * time.Minute)
				return stamp(c, r)
			}
		}), Play: func(s *scene.Stage) {
			launchWithWeb(s)
			s.Resize(2)
			s.Advance(55 * time.Minute)
			if n := len(s.Of("watch", "web")); n != 6 {
				s.T.Errorf("During was called %d times in 55 minutes", n)
			}
		}},
		"what the server does not keep is put once, and the state is left": {Operator: stampedMachine(p, stays), Play: func(s *scene.Stage) {
			s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "example.com/during")
				unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "example.com/enter")
			})
			launchWithWeb(s)
			s.Resize(2)
			s.Advance(5 * time.Minute)
			if n := len(s.Of("start", "web")); n != 1 {
				s.T.Errorf("Enter was called %d times", n)
			}
			s.Resize(4)
			s.Advance(2 * time.Minute)
			s.WantState("Finished")
		}},
		"a terminal state of deletion whose actions want something each time lets the object go": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.Deletion = []dsl.State{
				{Name: "Draining", Enter: p.put("enter"), During: p.put("during"), Transitions: []dsl.Transition{{To: "Gone"}}},
				{Name: "Gone", Enter: p.put("enter"), During: p.put("during"), Terminal: true},
			}
			foo.Machine(m)
		}, Play: func(s *scene.Stage) {
			launchWithWeb(s)
			s.Remove()
			s.Advance(5 * time.Second)
			s.WantGone()
		}},
	})
}
