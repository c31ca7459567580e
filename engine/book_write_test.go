// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// value returns what a path of the object leads to, nil when there is nothing.
func value(o *unstructured.Unstructured, path string) any {
	if o == nil {
		return nil
	}
	value, _ := dsl.MustParsePath(path).In(o.Object)
	return value
}

// at checks what a path of web leads to; nil when there should be nothing.
func (s *stage) at(path string, want any) {
	s.t.Helper()
	s.Settle()
	if got := value(s.web(), path); got != want {
		s.t.Errorf("%s is %v, want %v", path, got, want)
	}
}

// clamp sets spec.size to ten where it is larger.
func clamp(_ ctx, r *dsl.Request) error {
	if n, _ := value(r.Object, "spec.size").(int64); n > 10 {
		r.Patch.Set("spec.size", 10)
	}
	return nil
}

// copies returns a handler that copies a field to another.
func copies(from, to string) dsl.Func {
	return func(_ ctx, r *dsl.Request) error {
		r.Patch.Set(to, value(r.Object, from))
		return nil
	}
}

// TestAPersonsChangeIsNotOverwritten is law 1 for what somebody changes while a handler runs.
func TestAPersonsChangeIsNotOverwritten(t *testing.T) {
	var s *stage
	meanwhile := func(change func(), then dsl.Func) dsl.Func {
		return func(c ctx, r *dsl.Request) error {
			change()
			return then(c, r)
		}
	}
	corrected := func(causes ...dsl.Cause) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(causes, "clamp", j.Note("clamp", clamp, meanwhile(func() { s.size(3) }, clamp), clamp))
		}
	}
	correction := func(on *stage) {
		s = on
		s.begin()
		s.size(50)
		s.Called("clamp update", "clamp update")
		s.at("spec.size", int64(3))
		s.Advance(time.Minute)
		s.Called()
	}
	scenarios(t, map[string]scenario{
		"a level-triggered handler does not undo it":   {corrected(dsl.Reconcile), correction},
		"a handler of create and update does not, too": {corrected(dsl.Create, dsl.Update), correction},
		"nor one that looks at one field": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnField("spec.size", "clamp", j.Note("clamp", meanwhile(func() { s.size(3) }, clamp), clamp))
			}, func(on *stage) {
				s = on
				s.begin()
				s.size(50)
				s.Called("clamp update", "clamp update")
				s.at("spec.size", int64(3))
			},
		},
		"a delete handler does not, too": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("left", j.Note("left", meanwhile(func() { s.size(3) }, clamp), clamp))
				foo.OnDelete("stay", j.Note("stay", temporary(late)))
			}, func(on *stage) {
				s = on
				s.begin()
				s.size(50)
				s.remove()
				s.at("spec.size", int64(3))
			},
		},
		"what a handler does not look at costs it nothing": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnField("spec.size", "copy", j.Note("copy",
					meanwhile(func() { s.set("gold", "metadata", "labels", "tier") }, copies("spec.size", "spec.copy"))))
			}, func(on *stage) {
				s = on
				s.begin()
				s.size(2)
				s.Called("copy update")
				s.at("spec.copy", int64(2))
				s.at("metadata.labels.tier", "gold")
				s.Process.Restart()
				s.Called()
			},
		},
		"another handler of the pass keeps what it did": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnField("spec.size", "size", j.Note("size", copies("spec.size", "spec.copy")))
				foo.OnField("spec.color", "color", j.Note("color",
					meanwhile(func() { s.set("green", "spec", "color") }, copies("spec.color", "spec.paint")), copies("spec.color", "spec.paint")))
			}, func(on *stage) {
				s = on
				s.begin()
				s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(2), "color": "blue"}
				})
				s.Called("size update", "color update", "color update")
				s.at("spec.copy", int64(2))
				s.at("spec.paint", "green")
			},
		},
	})
}

// profiles are ways to hold less of an object than its handlers write to.
func profiles() map[string]func(foo *dsl.Resource) {
	return map[string]func(foo *dsl.Resource){
		"keep":            func(foo *dsl.Resource) { foo.Keep = []dsl.Path{{"spec", "size"}} },
		"cache: metadata": func(foo *dsl.Resource) { foo.Cache = dsl.CacheMetadata },
		"cache: live":     func(foo *dsl.Resource) { foo.Cache = dsl.CacheLive },
		"cache: compact":  func(foo *dsl.Resource) { foo.Cache = dsl.CacheCompact },
	}
}

// othersToo is a web that another controller reports on, too.
const othersToo = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, color: red}, status: {old: 1, size: 1,
	conditions: [{type: Theirs, status: "True", reason: Theirs, message: "", lastTransitionTime: "2020-01-01T00:00:00Z"}]}}`

// TestWritesDoNotDependOnTheCache holds that what a handler wants is worked out against the object, also
// where the cache does not hold what is written to.
func TestWritesDoNotDependOnTheCache(t *testing.T) {
	ready := func(_ ctx, r *dsl.Request) error {
		r.Patch.SetCondition("Ready", "True", "Done", "All is well.")
		return nil
	}
	all := map[string]scenario{}
	for name, hold := range profiles() {
		all[name+": conditions of others stay"] = scenario{
			func(foo *dsl.Resource, j *journal) {
				hold(foo)
				foo.OnReconcile("ready", j.Note("ready", ready))
			}, func(s *stage) {
				s.Create(othersToo)
				s.Launch()
				if got := s.conditions(); got != "Theirs True, Ready True" {
					s.t.Errorf("conditions are %s", got)
				}
			},
		}
		all[name+": what is so already is not sent, and a transition time stays"] = scenario{
			func(foo *dsl.Resource, j *journal) {
				hold(foo)
				foo.OnReconcile("ready", j.Note("ready", ready))
			}, func(s *stage) {
				s.Create(web)
				s.Launch()
				s.Called("ready resume")
				before := transition(s.web())
				s.Forget()
				s.Advance(time.Hour)
				s.set("gold", "metadata", "labels", "tier")
				s.Called("ready update")
				s.Wrote()
				s.Process.Restart()
				s.Called("ready resume")
				s.Wrote()
				if after := transition(s.web()); before == "" || before != after {
					s.t.Errorf("the transition time was %s, and is %s", before, after)
				}
			},
		}
		all[name+": what is to be removed is"] = scenario{
			func(foo *dsl.Resource, j *journal) {
				hold(foo)
				foo.OnReconcile("tidy", j.Note("tidy", func(_ ctx, r *dsl.Request) error {
					r.Patch.RemoveStatus("old")
					r.Patch.Remove("spec.color")
					return nil
				}))
			}, func(s *stage) {
				s.Create(othersToo)
				s.Launch()
				s.at("status.old", nil)
				s.at("spec.color", nil)
				s.at("status.size", int64(1))
				s.Advance(time.Hour)
				s.Forget()
				s.set("gold", "metadata", "labels", "tier")
				s.Called("tidy update")
				s.Wrote()
			},
		}
	}
	scenarios(t, all)
}

// conditions lists web's conditions.
func (s *stage) conditions() string {
	s.t.Helper()
	s.Settle()
	list, _, _ := unstructured.NestedSlice(s.web().Object, "status", "conditions")
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

// conditionOf returns a condition of the object, nil when it has none of this type.
func conditionOf(o *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return c
		}
	}
	return nil
}

// transition is the time at which the condition Ready came to its status.
func transition(o *unstructured.Unstructured) string {
	text, _ := conditionOf(o, "Ready")["lastTransitionTime"].(string)
	return text
}

// TestAConditionSaysWhatItsHandlerSaw holds that observedGeneration is never one that the handler has yet
// to see.
func TestAConditionSaysWhatItsHandlerSaw(t *testing.T) {
	for name, hold := range profiles() {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
				s := newStage(t, c)
				ready := func(_ ctx, r *dsl.Request) error {
					r.Patch.SetCondition("Ready", metav1.ConditionTrue, "Done", "")
					return nil
				}
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					hold(foo)
					foo.OnReconcile("ready", s.Note("ready", func(c ctx, r *dsl.Request) error {
						s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
							o.Object["spec"] = map[string]any{"size": int64(2)}
							o.SetLabels(map[string]string{"tier": "gold"}) // which every cache holds
						})
						return ready(c, r)
					}, fails(errAgain), ready))
				})
				s.Launch()
				s.Create(web)
				s.Called("ready create", "ready create") // what the first wanted is void
				if got := conditionOf(s.web(), "Ready")["observedGeneration"]; got != nil && got != int64(1) {
					t.Errorf("before a handler has seen generation 2 through, a condition says %v", got)
				}
				s.Advance(time.Minute)
				s.Called("ready create 2")
				if got := conditionOf(s.web(), "Ready")["observedGeneration"]; got != int64(2) {
					t.Errorf("in the end the condition says generation %v, want 2", got)
				}
			})
		})
	}
}
