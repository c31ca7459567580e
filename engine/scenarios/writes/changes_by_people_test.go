// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// clamp sets spec.size to ten where it is larger.
func clamp(_ context.Context, r *dsl.Request) error {
	if n, _ := scene.ValueAt(r.Object, "spec.size").(int64); n > 10 {
		r.Patch.Set("spec.size", 10)
	}
	return nil
}

// copies returns a handler that copies a field to another.
func copies(from, to string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set(to, scene.ValueAt(r.Object, from))
		return nil
	}
}

// TestAPersonsChangeIsNotOverwritten is law 1 for what somebody changes while a handler runs.
func TestAPersonsChangeIsNotOverwritten(t *testing.T) {
	var s *scene.Stage
	meanwhile := func(change func(), then dsl.Func) dsl.Func {
		return func(c context.Context, r *dsl.Request) error {
			change()
			return then(c, r)
		}
	}
	corrected := func(causes ...dsl.Cause) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(causes, "clamp", j.Note("clamp", clamp, meanwhile(func() { s.Resize(3) }, clamp), clamp))
		}
	}
	correction := func(on *scene.Stage) {
		s = on
		s.Begin()
		s.Resize(50)
		s.Called("clamp update", "clamp update")
		s.WantField("spec.size", int64(3))
		s.Advance(time.Minute)
		s.Called()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a level-triggered handler does not undo it":   {Operator: corrected(dsl.Reconcile), Play: correction},
		"a handler of create and update does not, too": {Operator: corrected(dsl.Create, dsl.Update), Play: correction},
		"nor one that looks at one field": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnField("spec.size", "clamp", j.Note("clamp", meanwhile(func() { s.Resize(3) }, clamp), clamp))
			}, Play: func(on *scene.Stage) {
				s = on
				s.Begin()
				s.Resize(50)
				s.Called("clamp update", "clamp update")
				s.WantField("spec.size", int64(3))
			},
		},
		"a delete handler does not, too": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("left", j.Note("left", meanwhile(func() { s.Resize(3) }, clamp), clamp))
				foo.OnDelete("stay", j.Note("stay", scene.RetriesAfter(scene.Late)))
			}, Play: func(on *scene.Stage) {
				s = on
				s.Begin()
				s.Resize(50)
				s.Remove()
				s.WantField("spec.size", int64(3))
			},
		},
		"what a handler does not look at costs it nothing": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnField("spec.size", "copy", j.Note("copy",
					meanwhile(func() { s.Set("gold", "metadata", "labels", "tier") }, copies("spec.size", "spec.copy"))))
			}, Play: func(on *scene.Stage) {
				s = on
				s.Begin()
				s.Resize(2)
				s.Called("copy update")
				s.WantField("spec.copy", int64(2))
				s.WantField("metadata.labels.tier", "gold")
				s.Process.Restart()
				s.Called()
			},
		},
		"another handler of the pass keeps what it did": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnField("spec.size", "size", j.Note("size", copies("spec.size", "spec.copy")))
				foo.OnField("spec.color", "color", j.Note("color",
					meanwhile(func() { s.Set("green", "spec", "color") }, copies("spec.color", "spec.paint")), copies("spec.color", "spec.paint")))
			}, Play: func(on *scene.Stage) {
				s = on
				s.Begin()
				s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(2), "color": "blue"}
				})
				s.Called("size update", "color update", "color update")
				s.WantField("spec.copy", int64(2))
				s.WantField("spec.paint", "green")
			},
		},
	})
}

// profiles are ways to hold an object with its size and these fields, in part or as a whole.
func profiles(fields ...string) map[string]func(foo *dsl.Resource) {
	return map[string]func(foo *dsl.Resource){
		"keep": func(foo *dsl.Resource) {
			for _, field := range append(fields, "spec.size") {
				foo.Keep = append(foo.Keep, dsl.MustParsePath(field))
			}
		},
		"cache: live":    func(foo *dsl.Resource) { foo.Cache = dsl.CacheLive },
		"cache: compact": func(foo *dsl.Resource) { foo.Cache = dsl.CacheCompact },
	}
}

// othersToo is a web that another controller reports on, too.
const othersToo = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, color: red}, status: {old: 1, size: 1,
	conditions: [{type: Theirs, status: "True", reason: Theirs, message: "", lastTransitionTime: "2020-01-01T00:00:00Z"}]}}`

// TestAWriteDoesNotDependOnWhatTheCacheHolds holds that a handler's patch is worked out against the object, however much of
// that the cache holds.
func TestAWriteDoesNotDependOnWhatTheCacheHolds(t *testing.T) {
	ready := func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetCondition("Ready", "True", "Done", "All is well.")
		return nil
	}
	all := map[string]scene.Scenario{}
	for name, hold := range profiles("spec.color", "status.old") {
		all[name+": conditions of others stay"] = scene.Scenario{
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				hold(foo)
				foo.OnReconcile("ready", j.Note("ready", ready))
			}, Play: func(s *scene.Stage) {
				s.Create(othersToo)
				s.Launch()
				if got := conditions(s); got != "Theirs True, Ready True" {
					s.T.Errorf("conditions are %s", got)
				}
			},
		}
		all[name+": what is so already is not sent, and a transition time stays"] = scene.Scenario{
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				hold(foo)
				foo.OnReconcile("ready", j.Note("ready", ready))
			}, Play: func(s *scene.Stage) {
				s.Create(scene.Web)
				s.Launch()
				s.Called("ready resume")
				before := transition(s.Web())
				s.Forget()
				s.Advance(time.Hour)
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("ready update")
				s.Wrote()
				s.Process.Restart()
				s.Called("ready resume")
				s.Wrote()
				if after := transition(s.Web()); before == "" || before != after {
					s.T.Errorf("the transition time was %s, and is %s", before, after)
				}
			},
		}
		all[name+": what is to be removed is"] = scene.Scenario{
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				hold(foo)
				foo.OnReconcile("tidy", j.Note("tidy", func(_ context.Context, r *dsl.Request) error {
					r.Patch.RemoveStatus("old")
					r.Patch.Remove("spec.color")
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Create(othersToo)
				s.Launch()
				s.WantField("status.old", nil)
				s.WantField("spec.color", nil)
				s.WantField("status.size", int64(1))
				s.Advance(time.Hour)
				s.Forget()
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("tidy update")
				s.Wrote()
			},
		}
	}
	scene.PlayAll(t, all)
}

// conditions lists web's conditions.
func conditions(s *scene.Stage) string {
	s.T.Helper()
	s.Settle()
	list, _, _ := unstructured.NestedSlice(s.Web().Object, "status", "conditions")
	out := ""
	for i, item := range list {
		c, _ := item.(map[string]any)
		if i > 0 {
			out += ", "
		}
		out += c["type"].(string) + " " + c["status"].(string)
	}
	return out
}

// transition is the time at which the condition Ready came to its status.
func transition(o *unstructured.Unstructured) string {
	text, _ := scene.Condition(o, "Ready")["lastTransitionTime"].(string)
	return text
}

// TestAConditionSaysWhatItsHandlerSaw holds that observedGeneration is never one that the handler has yet
// to see.
func TestAConditionSaysWhatItsHandlerSaw(t *testing.T) {
	for name, hold := range profiles() {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				ready := func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetCondition("Ready", metav1.ConditionTrue, "Done", "")
					return nil
				}
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					hold(foo)
					foo.OnReconcile("ready", s.Note("ready", func(c context.Context, r *dsl.Request) error {
						s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
							o.Object["spec"] = map[string]any{"size": int64(2)}
							o.SetLabels(map[string]string{"tier": "gold"}) // which every cache holds
						})
						return ready(c, r)
					}, scene.Fails(scene.ErrAgain), ready))
				})
				s.Launch()
				s.Create(scene.Web)
				s.Called("ready create", "ready create") // what the first wanted is void
				if got := scene.Condition(s.Web(), "Ready")["observedGeneration"]; got != nil && got != int64(1) {
					t.Errorf("before a handler has seen generation 2 through, a condition says %v", got)
				}
				s.Advance(time.Minute)
				s.Called("ready create 2")
				if got := scene.Condition(s.Web(), "Ready")["observedGeneration"]; got != int64(2) {
					t.Errorf("in the end the condition says generation %v, want 2", got)
				}
			})
		})
	}
}
