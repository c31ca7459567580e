// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// meeting is a handler that looks at spec.size alone, and somebody who writes while it runs for the first time.
type meeting struct {
	// object is the object at first; web where it is empty.
	object string
	// wants is what the handler asks for. It runs once before somebody writes, and sees what was there then.
	wants func(r *dsl.Request)
	// somebody changes the object.
	somebody func(o *unstructured.Unstructured)
	// runs is how often the handler runs in all.
	runs int
	// path leads to what is in the object in the end.
	path string
	want any
}

// unready returns a handler's wish for a condition, unless the object has it.
func unready(kind string) func(r *dsl.Request) {
	return func(r *dsl.Request) {
		if scene.Condition(r.Object, kind) == nil {
			r.Patch.SetCondition(kind, metav1.ConditionTrue, "Begun", "")
		}
	}
}

// setCondition returns a change of an object by which it gets a condition.
func setCondition(kind, status string) func(o *unstructured.Unstructured) {
	return scene.SetField([]any{map[string]any{
		"type": kind, "status": status, "reason": "Theirs", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
	}}, "status", "conditions")
}

// meetings are what handlers may want, and what somebody may change meanwhile.
func meetings() map[string]meeting {
	list := `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, finalizers: [a.example.com/one]}, spec: {size: 1, hosts: [a, b]}}`
	hosts := func(r *dsl.Request) []any { list, _ := scene.ValueAt(r.Object, "spec.hosts").([]any); return list }
	addHost := func(r *dsl.Request) { r.Patch.Set("spec.hosts", append(hosts(r), "ours")) }
	transform := func(change func(o *unstructured.Unstructured)) func(r *dsl.Request) {
		return func(r *dsl.Request) {
			r.Patch.Transform(func(o *unstructured.Unstructured) error { change(o); return nil })
		}
	}
	return map[string]meeting{
		"a default gives way to what somebody chose":            {scene.WebWithoutColor, scene.DefaultColor, scene.SetField("green", "spec", "color"), 2, "spec.color", "green"},
		"a default is set though somebody changed what is near": {scene.WebWithoutColor, scene.DefaultColor, scene.SetField("round", "spec", "shape"), 1, "spec.color", "white"},
		"what somebody has set to the same is no reason to run again": {
			scene.WebWithoutColor, scene.DefaultColor, scene.SetField("white", "spec", "color"), 1, "spec.color", "white",
		},
		"a removal sees what somebody put in the place": {
			"", func(r *dsl.Request) {
				if scene.ValueAt(r.Object, "spec.color") == "red" {
					r.Patch.Remove("spec.color")
				}
			}, scene.SetField("green", "spec", "color"), 2, "spec.color", "green",
		},
		"the removal of a map sees what somebody added to it": {
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, mix: {red: 1}}}`, func(r *dsl.Request) {
				if mix, _ := scene.ValueAt(r.Object, "spec.mix").(map[string]any); len(mix) == 1 {
					r.Patch.Remove("spec.mix")
				}
			}, scene.SetField(int64(2), "spec", "mix", "blue"), 2, "spec.mix.blue", int64(2),
		},
		"the removal of an empty map sees an empty field that somebody added to it": {
			`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, mix: {}}}`, func(r *dsl.Request) {
				if mix, is := scene.ValueAt(r.Object, "spec.mix").(map[string]any); is && len(mix) == 0 {
					r.Patch.Remove("spec.mix")
				}
			}, scene.SetField(map[string]any{}, "spec", "mix", "all"), 2, "spec.mix.all", map[string]any{},
		},
		"a label":       {"", wantsNote("labels"), scene.SetField("theirs", "metadata", "labels", "team"), 2, "metadata.labels.team", "theirs"},
		"an annotation": {"", wantsNote("annotations"), scene.SetField("theirs", "metadata", "annotations", "team"), 2, "metadata.annotations.team", "theirs"},
		"another label": {"", wantsNote("labels"), scene.SetField("x", "metadata", "labels", "other"), 1, "metadata.labels.team", "ours"},
		"a list of finalizers": {
			list, func(r *dsl.Request) {
				r.Patch.Set("metadata.finalizers", append([]string{"example.com/ours"}, r.Object.GetFinalizers()...))
			}, func(o *unstructured.Unstructured) {
				o.SetFinalizers(append(o.GetFinalizers(), "example.com/theirs"))
			}, 2, "metadata.finalizers", []any{"example.com/ours", "a.example.com/one", "example.com/theirs"},
		},
		"a list that is replaced": {
			list, addHost, scene.SetField([]any{"a", "b", "theirs"}, "spec", "hosts"), 2, "spec.hosts", []any{"a", "b", "theirs", "ours"},
		},
		"a list beside one that is replaced": {list, addHost, scene.SetField([]any{"x"}, "spec", "others"), 1, "spec.hosts", []any{"a", "b", "ours"}},
		"operations of a JSON patch on an entry that has moved": {
			list, func(r *dsl.Request) {
				if hosts(r)[0] == "a" {
					r.Patch.JSON(dsl.JSONOp{Op: "remove", Path: "/spec/hosts/0"})
				}
			}, scene.SetField([]any{"theirs", "a", "b"}, "spec", "hosts"), 2, "spec.hosts", []any{"theirs", "a", "b"},
		},
		"operations of a JSON patch where somebody took the entry away": {
			list, func(r *dsl.Request) {
				if hosts(r)[0] == "a" {
					r.Patch.JSON(dsl.JSONOp{Op: "remove", Path: "/spec/hosts/0"})
				}
			}, scene.SetField([]any{"b", "c"}, "spec", "hosts"), 2, "spec.hosts", []any{"b", "c"},
		},
		"operations of a JSON patch beside what somebody changed": {
			list, func(r *dsl.Request) { r.Patch.JSON(dsl.JSONOp{Op: "add", Path: "/spec/color", Value: "white"}) },
			scene.SetField("round", "spec", "shape"), 1, "spec.color", "white",
		},
		"a transformation that knows a value": {
			scene.WebWithoutColor, func(r *dsl.Request) {
				if scene.ValueAt(r.Object, "spec.color") == nil {
					transform(scene.SetField("white", "spec", "color"))(r)
				}
			}, scene.SetField("green", "spec", "color"), 2, "spec.color", "green",
		},
		"a transformation that adds an entry to a list to which somebody adds one": {
			list, transform(func(o *unstructured.Unstructured) {
				hosts, _, _ := unstructured.NestedSlice(o.Object, "spec", "hosts")
				scene.SetField(append(hosts, "ours"), "spec", "hosts")(o)
			}), scene.SetField([]any{"a", "b", "theirs"}, "spec", "hosts"), 1, "spec.hosts", []any{"a", "b", "theirs", "ours"},
		},
		"a status": {
			"", func(r *dsl.Request) {
				if scene.ValueAt(r.Object, "status.phase") == nil {
					r.Patch.SetStatus("phase", "New")
				}
			}, scene.SetField("Failed", "status", "phase"), 2, "status.phase", "Failed",
		},
		"another field of status": {
			"", func(r *dsl.Request) { r.Patch.SetStatus("phase", "New") }, scene.SetField("x", "status", "theirs"), 1, "status.phase", "New",
		},
		"a condition of the same type": {
			"", unready("Ready"), setCondition("Ready", "False"), 2, "status.conditions", []any{map[string]any{
				"type": "Ready", "status": "False", "reason": "Theirs", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
			}},
		},
		"a field that the handler has set to what it is already": {
			"", func(r *dsl.Request) {
				r.Patch.Set("spec.color", scene.ValueAt(r.Object, "spec.color"))
				r.Patch.Label("team", "ours")
			},
			scene.SetField("green", "spec", "color"), 2, "spec.color", "green",
		},
	}
}

// wantsNote returns a handler's wish for a label or an annotation, unless it is there.
func wantsNote(where string) func(r *dsl.Request) {
	return func(r *dsl.Request) {
		if scene.ValueAt(r.Object, "metadata."+where+".team") == nil {
			r.Patch.Set("metadata."+where+".team", "ours")
		}
	}
}

// TestWhatSomebodyWritesWhileAHandlerRunsStays is law 1 for fields that a handler writes and does not look at: its patch is
// sent after a conflict only where they are as the handler saw them.
func TestWhatSomebodyWritesWhileAHandlerRunsStays(t *testing.T) {
	for name, one := range meetings() {
		for kind, causes := range map[string][]dsl.Cause{"level-triggered": {dsl.Reconcile}, "edge-triggered": {dsl.Create, dsl.Update}} {
			var s *scene.Stage
			t.Run(name+", "+kind, func(t *testing.T) {
				scene.Play(t, scene.Scenario{
					Operator: func(foo *dsl.Resource, j *kit.Journal) {
						ran := false
						foo.On(causes, "one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
							one.wants(r)
							if !ran {
								ran = true
								s.Update(scene.Foos, "default", "web", one.somebody)
							}
							return nil
						}), dsl.Field("spec.size"))
					},
					Play: func(on *scene.Stage) {
						s = on
						s.Launch()
						object := one.object
						if object == "" {
							object = scene.Web
						}
						s.Create(object)
						s.Settle()
						if diff := cmp.Diff(one.want, scene.ValueAt(s.Web(), one.path)); diff != "" {
							t.Errorf("%s (-want +got):\n%s", one.path, diff)
						}
						if calls := s.Take(); len(calls) != one.runs {
							t.Errorf("the handler ran %d times, want %d: %v", len(calls), one.runs, calls)
						}
					},
				})
			})
		}
	}
}

// beforeEach has something happen before each of an operator's first patches.
func beforeEach(patches int, happens func(n int)) func(*engine.Settings) {
	n := 0
	return func(e *engine.Settings) {
		e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && n < patches {
					n++
					happens(n)
				}
				return next.RoundTrip(r)
			})
		})
	}
}

// meetSomebody starts an operator while somebody writes to web before each of its first patches.
func meetSomebody(s *scene.Stage, object string, patches int, somebody func(n int) func(o *unstructured.Unstructured)) {
	s.T.Helper()
	s.Create(object)
	s.Process = s.Start(s.Operator, beforeEach(patches, func(n int) { s.Update(scene.Foos, "default", "web", somebody(n)) }))
	s.Settle()
}

// TestABusyWriterOfOtherFieldsCostsNoRun holds that handlers do not run again for what others write beside them, however
// often that is: other fields of status, conditions of other types.
func TestABusyWriterOfOtherFieldsCostsNoRun(t *testing.T) {
	reports := func(r *dsl.Request) {
		r.Patch.SetStatus("phase", fmt.Sprint(r.Attempt))
		r.Patch.SetCondition("Ready", metav1.ConditionTrue, "Done", "")
	}
	writers := map[string]func(n int) func(o *unstructured.Unstructured){
		"fields of status": func(n int) func(o *unstructured.Unstructured) { return scene.SetField(int64(n), "status", "beat") },
		"a condition of another type": func(n int) func(o *unstructured.Unstructured) {
			return func(o *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
				ours := scene.Condition(o, "Ready")
				setCondition("Theirs", fmt.Sprint(n))(o)
				if len(list) > 0 && ours != nil {
					theirs, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
					scene.SetField(append(theirs, ours), "status", "conditions")(o)
				}
			}
		},
	}
	for name, somebody := range writers {
		for cache, hold := range profiles("status.phase") {
			t.Run(name+", "+cache, func(t *testing.T) {
				scene.Play(t, scene.Scenario{
					Operator: func(foo *dsl.Resource, j *kit.Journal) {
						hold(foo)
						foo.On(scene.CreateAndUpdate(), "one", j.Note("one", func(_ context.Context, r *dsl.Request) error { reports(r); return nil }), dsl.Field("metadata.labels"))
						foo.On(scene.CreateAndUpdate(), "two", j.Note("two", func(_ context.Context, r *dsl.Request) error {
							r.Patch.SetStatus("phase", "Two")
							r.Patch.Annotate("team", "ours")
							return nil
						}), dsl.Field("metadata.labels"))
					},
					Play: func(s *scene.Stage) {
						meetSomebody(s, strings.Replace(scene.WebWithoutColor, "name: web", "name: web, labels: {tier: gold}", 1), 4, somebody)
						s.WantField("status.phase", "Two")
						s.WantField("metadata.annotations.team", "ours")
						s.Called("one create", "two create")
					},
				})
			})
		}
	}
}

// TestAHandlerThatBuiltOnARefusedChangeRunsAgain holds that a handler whose change was built on that of another one runs
// again with it.
func TestAHandlerThatBuiltOnARefusedChangeRunsAgain(t *testing.T) {
	var s *scene.Stage
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			ran := false
			foo.OnCreate("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
				color := scene.ValueAt(r.Object, "spec.color")
				if color == nil {
					color = "white"
				}
				r.Patch.Set("spec.mix", []any{color})
				r.Patch.Set("spec.color", color)
				return nil
			}), dsl.Field("spec.size"))
			foo.OnCreate("two", j.Note("two", func(_ context.Context, r *dsl.Request) error {
				mix, _ := scene.ValueAt(r.Object, "spec.mix").([]any)
				r.Patch.Set("spec.mix", append(mix, "two"))
				if !ran {
					ran = true
					s.Update(scene.Foos, "default", "web", scene.SetField("green", "spec", "color"))
				}
				return nil
			}), dsl.Field("spec.size"))
		},
		Play: func(on *scene.Stage) {
			s = on
			s.Launch()
			s.Create(scene.WebWithoutColor)
			s.Called("one create", "two create", "one create", "two create")
			if diff := cmp.Diff([]any{"green", "two"}, scene.ValueAt(s.Web(), "spec.mix")); diff != "" {
				t.Errorf("the mix (-want +got):\n%s", diff)
			}
		},
	})
}
