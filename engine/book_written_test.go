// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatBecomesOfAWrite is law 1 and law 4 for a handler's own change that the server makes another one
// of: it is no news to the handler that asked for it, whatever came of it, and it is over after one or two
// writes, for this process and the next.
func TestWhatBecomesOfAWrite(t *testing.T) {
	setsSize := func(_ context.Context, r *dsl.Request) error {
		r.Patch.Set("spec.size", 7)
		return nil
	}
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
		"edge-triggered":                func(foo *dsl.Resource, id string, fn dsl.Func) { foo.On(both(), id, fn) },
		"edge-triggered, with a digest": func(foo *dsl.Resource, id string, fn dsl.Func) { foo.On(both(), id, fn, dsl.NoOld()) },
		"edge-triggered, beside another": func(foo *dsl.Resource, id string, fn dsl.Func) {
			foo.OnCreate("made", succeeds)
			foo.On(both(), id, fn)
		},
		"level-triggered": func(foo *dsl.Resource, id string, fn dsl.Func) { foo.OnReconcile(id, fn) },
		"level-triggered, beside another": func(foo *dsl.Resource, id string, fn dsl.Func) {
			foo.OnCreate("made", succeeds)
			foo.OnReconcile(id, fn)
		},
	}
	for name, test := range tests {
		for kind, declare := range kinds {
			t.Run(name+": "+kind, func(t *testing.T) {
				level := kind[0] == 'l'
				perform(t, scenario{
					func(foo *dsl.Resource, j *journal) {
						declare(foo, "writes", j.Note("writes", func(_ context.Context, r *dsl.Request) error {
							test.wants(r.Patch)
							return nil
						}))
					}, func(s *stage) {
						if test.server != nil {
							defer s.Rewrite(foos, test.server)()
						}
						s.Launch()
						s.Create(web)
						s.Advance(3 * time.Minute)
						s.few("writes create", 3)
						s.Process.Restart()
						s.Advance(3 * time.Minute)
						if level {
							s.few("writes resume", 1)
						} else {
							s.few("", 0)
						}
						s.size(2)
						s.Advance(3 * time.Minute)
						s.few("writes update", 3)
						s.Process.Restart()
						s.Advance(3 * time.Minute)
						if !level {
							s.few("", 0)
						}
					},
				})
			})
		}
	}
	var on *stage
	scenarios(t, map[string]scenario{
		"what somebody changes while the handler runs is a change, though the answer to its write has it": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "writes", j.Note("writes", succeeds, func(_ context.Context, r *dsl.Request) error {
					on.size(3)
					r.Patch.Label("seen", "yes")
					return nil
				}, succeeds))
			}, func(s *stage) {
				on = s
				s.begin()
				s.size(2)
				s.Called("writes update", "writes update")
				if calls := s.Of("writes", "web"); !cmp.Equal(calls[len(calls)-1].Object.Object["spec"], map[string]any{"size": int64(3), "color": "red"}) {
					s.t.Errorf("the last call saw %v", calls[len(calls)-1].Object.Object["spec"])
				}
				s.Process.Restart()
				s.Called()
			},
		},
		"one that looks at what a webhook made of it sees that": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "writes", j.Note("writes", succeeds, setsSize), dsl.Field("spec.color"))
				foo.On(both(), "sees", func(_ context.Context, r *dsl.Request) error {
					size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
					j.Add(fmt.Sprint("size ", size))
					return nil
				}, dsl.Field("spec.size"))
			}, func(s *stage) {
				s.begin()
				defer s.Rewrite(foos, func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, int64(8), "spec", "size")
				})()
				s.set("blue", "spec", "color")
				s.Advance(3 * time.Minute)
				got := s.Take()
				if len(got) == 0 || len(got) > 4 || got[len(got)-1] != "size 8" {
					s.t.Errorf("calls %v", got)
				}
				s.Forget()
				s.Process.Restart()
				s.few("", 0)
			},
		},
		"a webhook that stamps each write is no loop": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "writes", j.Note("writes", setsSize), dsl.Field("spec"))
			}, func(s *stage) {
				stamp := int64(0)
				defer s.Rewrite(foos, func(o *unstructured.Unstructured) {
					stamp++
					_ = unstructured.SetNestedField(o.Object, stamp, "spec", "stamp")
				})()
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				if calls, writes := s.Take(), s.Process.Writes(); len(calls) > 2 || len(writes) > 4 {
					s.t.Errorf("%d calls and %d writes in an hour", len(calls), len(writes))
				}
			},
		},
		"what somebody changes while the write is on its way is a change": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "writes", j.Note("writes", succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("seen", "yes")
					return nil
				}))
			}, func(s *stage) {
				s.begin()
				s.DelayNext("patch", foos, 10*time.Second)
				s.size(2)
				s.Advance(5 * time.Second)
				s.Called("writes update")
				s.size(3)
				s.Advance(time.Minute)
				s.Called("writes update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// few compares what was called since the last look, which is once at the most, and that the writes were
// few.
func (s *stage) few(call string, writes int) {
	s.t.Helper()
	s.Settle()
	calls, wrote := s.Take(), s.Process.Writes()
	switch {
	case len(calls) > 1 || len(calls) == 1 && calls[0] != call || len(calls) == 0 && call != "":
		s.t.Errorf("%d calls, the first %v, want %q", len(calls), calls[:min(3, len(calls))], call)
	case len(wrote) > writes:
		s.t.Errorf("%d writes, want %d at the most: %v", len(wrote), writes, wrote)
	}
}
