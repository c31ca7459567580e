// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAWriteThatTheServerChangesIsHandledOnce is law 1 and law 4 for a handler's own change that the server makes another one
// of: it is no news to the handler that asked for it, whatever came of it, and it is over after one or two
// writes, for this process and the next.
func TestAWriteThatTheServerChangesIsHandledOnce(t *testing.T) {
	prunes := func(path ...string) func(o *unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, path...) }
	}
	tests := map[string]struct {
		wants func(p *dsl.Patch)
		// server changes what is written, nil when it does not.
		server func(o *unstructured.Unstructured)
	}{
		"a field is removed that is not there":                   {wants: func(p *dsl.Patch) { p.Remove("spec.extra") }},
		"a field is removed below one that is not there":         {wants: func(p *dsl.Patch) { p.Remove("spec.extra.deep") }},
		"a label is removed where there are none":                {wants: func(p *dsl.Patch) { p.Remove("metadata.labels.extra") }},
		"an annotation is removed that is not there":             {wants: func(p *dsl.Patch) { p.Remove("metadata.annotations.extra") }},
		"the last field of a map is set and removed by the next": {wants: func(p *dsl.Patch) { p.Set("spec.extra.deep", 1); p.Remove("spec.extra.deep") }},
		"an empty map is set":                                    {wants: func(p *dsl.Patch) { p.Set("spec.extra", map[string]any{}) }},
		"a whole number is written as a fraction":                {wants: func(p *dsl.Patch) { p.Set("spec.extra", 2.0) }},
		"a value that is there is set":                           {wants: func(p *dsl.Patch) { p.Set("spec.color", "red") }},
		"the schema drops a field": {
			wants:  func(p *dsl.Patch) { p.Set("spec.extra", 1) },
			server: prunes("spec", "extra"),
		},
		"the schema drops a field below another one": {
			wants:  func(p *dsl.Patch) { p.Set("spec.extra.deep", 1) },
			server: prunes("spec", "extra", "deep"),
		},
		"the schema drops one field and takes another": {
			wants:  func(p *dsl.Patch) { p.Set("spec.extra", 1); p.Set("spec.weight", 5) },
			server: prunes("spec", "extra"),
		},
		"a webhook takes another value": {
			wants: func(p *dsl.Patch) { p.Set("spec.weight", 5) },
			server: func(o *unstructured.Unstructured) {
				if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "weight"); n == 5 {
					_ = unstructured.SetNestedField(o.Object, int64(4), "spec", "weight")
				}
			},
		},
		"a webhook puts back what was": {
			wants:  func(p *dsl.Patch) { p.Set("spec.color", "blue") },
			server: func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, "red", "spec", "color") },
		},
		"a webhook adds a label": {
			wants: func(p *dsl.Patch) { p.Set("spec.weight", 5) },
			server: func(o *unstructured.Unstructured) {
				if _, found, _ := unstructured.NestedInt64(o.Object, "spec", "weight"); found {
					_ = unstructured.SetNestedField(o.Object, "x", "metadata", "labels", "hooked")
				}
			},
		},
		"the server fills in a default in a list": {
			wants: func(p *dsl.Patch) { p.Set("spec.ports", []any{map[string]any{"port": 80}}) },
			server: func(o *unstructured.Unstructured) {
				ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
				for _, port := range ports {
					port.(map[string]any)["protocol"] = "TCP"
				}
				if len(ports) > 0 {
					_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
				}
			},
		},
	}
	kinds := map[string]func(foo *dsl.Resource, id string, fn dsl.Func){
		"edge-triggered":                func(foo *dsl.Resource, id string, fn dsl.Func) { foo.On(scene.CreateAndUpdate(), id, fn) },
		"edge-triggered, with a digest": func(foo *dsl.Resource, id string, fn dsl.Func) { foo.On(scene.CreateAndUpdate(), id, fn, dsl.NoOld()) },
		"edge-triggered, beside another": func(foo *dsl.Resource, id string, fn dsl.Func) {
			foo.OnCreate("made", scene.Succeeds)
			foo.On(scene.CreateAndUpdate(), id, fn)
		},
		"level-triggered": func(foo *dsl.Resource, id string, fn dsl.Func) { foo.OnReconcile(id, fn) },
		"level-triggered, beside another": func(foo *dsl.Resource, id string, fn dsl.Func) {
			foo.OnCreate("made", scene.Succeeds)
			foo.OnReconcile(id, fn)
		},
	}
	for name, test := range tests {
		for kind, declare := range kinds {
			t.Run(name+": "+kind, func(t *testing.T) {
				level := kind[0] == 'l'
				scene.Play(t, scene.Scenario{
					Operator: func(foo *dsl.Resource, j *kit.Journal) {
						declare(foo, "writes", j.Note("writes", func(_ context.Context, r *dsl.Request) error {
							test.wants(r.Patch)
							return nil
						}))
					}, Play: func(s *scene.Stage) {
						if test.server != nil {
							defer s.Rewrite(scene.Foos, test.server)()
						}
						s.Launch()
						s.Create(scene.Web)
						s.Advance(3 * time.Minute)
						wantFewWrites(s, "writes create", 3)
						s.Process.Restart()
						s.Advance(3 * time.Minute)
						if level {
							wantFewWrites(s, "writes resume", 1)
						} else {
							wantFewWrites(s, "", 0)
						}
						s.Resize(2)
						s.Advance(3 * time.Minute)
						wantFewWrites(s, "writes update", 3)
						s.Process.Restart()
						s.Advance(3 * time.Minute)
						if !level {
							wantFewWrites(s, "", 0)
						}
					},
				})
			})
		}
	}
}

// TestAChangeBesideAWriteIsHandled is law 1 for what others change while a handler's own write is under way, and law 4 for what a
// webhook does with each write.
func TestAChangeBesideAWriteIsHandled(t *testing.T) {
	setsSize := func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set("spec.size", 7)
		return nil
	}
	var on *scene.Stage
	scene.PlayAll(t, map[string]scene.Scenario{
		"what somebody changes while the handler runs is a change, though the answer to its write has it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "writes", j.Note("writes", scene.Succeeds, func(_ context.Context, r *dsl.Request) error {
					on.Resize(3)
					r.Patch.Label("seen", "yes")
					return nil
				}, scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				on = s
				s.Begin()
				s.Resize(2)
				s.Called("writes update", "writes update")
				if calls := s.Of("writes", "web"); !cmp.Equal(calls[len(calls)-1].Object.Object["spec"], map[string]any{"size": int64(3), "color": "red"}) {
					s.T.Errorf("the last call saw %v", calls[len(calls)-1].Object.Object["spec"])
				}
				s.Process.Restart()
				s.Called()
			},
		},
		"one that looks at what a webhook made of it sees that": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "writes", j.Note("writes", scene.Succeeds, setsSize), dsl.Field("spec.color"))
				foo.On(scene.CreateAndUpdate(), "sees", func(_ context.Context, r *dsl.Request) error {
					size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
					j.Add(fmt.Sprint("size ", size))
					return nil
				}, dsl.Field("spec.size"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				defer s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, int64(8), "spec", "size")
				})()
				s.Set("blue", "spec", "color")
				s.Advance(3 * time.Minute)
				got := s.Take()
				if len(got) == 0 || len(got) > 4 || got[len(got)-1] != "size 8" {
					s.T.Errorf("calls %v", got)
				}
				s.Forget()
				s.Process.Restart()
				wantFewWrites(s, "", 0)
			},
		},
		"a webhook that stamps each write is no loop": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "writes", j.Note("writes", setsSize), dsl.Field("spec"))
			}, Play: func(s *scene.Stage) {
				stamp := int64(0)
				defer s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) {
					stamp++
					_ = unstructured.SetNestedField(o.Object, stamp, "spec", "stamp")
				})()
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				if calls, writes := s.Take(), s.Process.Writes(); len(calls) > 2 || len(writes) > 4 {
					s.T.Errorf("%d calls and %d writes in an hour", len(calls), len(writes))
				}
			},
		},
		"what somebody changes while the write is on its way is a change": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "writes", j.Note("writes", scene.Succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("seen", "yes")
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.DelayNext("patch", scene.Foos, 10*time.Second)
				s.Resize(2)
				s.Advance(5 * time.Second)
				s.Called("writes update")
				s.Resize(3)
				s.Advance(time.Minute)
				s.Called("writes update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// wantFewWrites compares what was called since the last look, which is once at the most, and that the writes were
// few.
func wantFewWrites(s *scene.Stage, call string, writes int) {
	s.T.Helper()
	s.Settle()
	calls, wrote := s.Take(), s.Process.Writes()
	switch {
	case len(calls) > 1 || len(calls) == 1 && calls[0] != call || len(calls) == 0 && call != "":
		s.T.Errorf("%d calls, the first %v, want %q", len(calls), calls[:min(3, len(calls))], call)
	case len(wrote) > writes:
		s.T.Errorf("%d writes, want %d at the most: %v", len(wrote), writes, wrote)
	}
}
