// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAChangeOfAnIgnoredPathRunsNoHandler holds that a change of what a resource ignores makes no handler run, and is in no
// difference, and that all else is seen as ever.
func TestAChangeOfAnIgnoredPathRunsNoHandler(t *testing.T) {
	diff := func(j *kit.Journal) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			line := string(r.Cause)
			for _, c := range r.Diff {
				line += " " + c.Path.String()
			}
			j.Add(line)
			return nil
		}
	}
	tests := map[string]struct {
		ignore  []string
		handler func(foo *dsl.Resource, j *kit.Journal)
		quiet   []string // paths that are set and that the handler does not see
		want    []string // its calls when spec.size is set after that
	}{
		"by a handler of the essence": {
			[]string{"spec.lastSync"}, func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("a", diff(j)) },
			[]string{"spec.lastSync"}, []string{"update spec.size"},
		},
		"by one of a field around it": {
			[]string{"spec.lastSync"}, func(foo *dsl.Resource, j *kit.Journal) { foo.OnField("spec", "a", diff(j)) },
			[]string{"spec.lastSync"}, []string{"update spec.size"},
		},
		"by one that is level-triggered": {
			[]string{"spec.lastSync", `metadata.annotations["example.com/seen"]`}, func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("a", diff(j)) },
			[]string{"spec.lastSync", `metadata.annotations["example.com/seen"]`}, []string{"update"},
		},
		"by one of labels and annotations": {
			[]string{`metadata.annotations["example.com/seen"]`, "metadata.labels.rev"}, func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("a", diff(j))
			},
			[]string{`metadata.annotations["example.com/seen"]`, "metadata.labels.rev"}, []string{"update spec.size"},
		},
		"what lies below it, and the maps that it alone is in": {
			[]string{"spec.sync.last"}, func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("a", diff(j)) },
			[]string{"spec.sync.last.at", "spec.sync.last.by"}, []string{"update spec.size"},
		},
		"in the status": {
			[]string{"status.probed"}, func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("a", diff(j), dsl.Field("status", "spec"))
			},
			[]string{"status.probed"}, []string{"update spec.size"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					for _, path := range tt.ignore {
						foo.Ignore = append(foo.Ignore, dsl.MustParsePath(path))
					}
					tt.handler(foo, j)
				},
				Play: func(s *scene.Stage) {
					s.Begin()
					for _, value := range []string{"1", "2"} {
						for _, path := range tt.quiet {
							s.Set(value, dsl.MustParsePath(path)...)
							s.Called()
						}
					}
					s.Process.Restart()
					s.Take() // of a resume
					s.Set("3", dsl.MustParsePath(tt.quiet[0])...)
					s.Called()
					s.Resize(2)
					s.Called(tt.want...)
				},
			})
		})
	}
}

// TestAPathThatIsNoLongerIgnoredIsNoChange holds that a handler does not see a field as added which an earlier version
// ignored.
func TestAPathThatIsNoLongerIgnoredIsNoChange(t *testing.T) {
	operator := func(ignored string, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			if ignored != "" {
				foo.Ignore = []dsl.Path{dsl.MustParsePath(ignored)}
			}
			foo.On(scene.CreateAndUpdate(), "watch", scene.NotesOld(j), options...)
		}
	}
	nothing := func(*scene.Stage) {}
	blue := func(s *scene.Stage) { s.Set("blue", "spec", "color") }
	tests := map[string]struct {
		options       []dsl.Option
		before, after string // what is ignored
		away          func(s *scene.Stage)
		want          []string
	}{
		"by a handler of the essence: it runs, for that is unknown": {nil, "spec.color", "", nothing, []string{"update map[] []"}},
		"and it has changed": {nil, "spec.color", "", blue, []string{"update map[] []"}},
		"by one of the spec: it was handled, by its generation":        {[]dsl.Option{dsl.Field("spec")}, "spec.color", "", nothing, nil},
		"by one of the spec, and it has changed: it runs, without old": {[]dsl.Option{dsl.Field("spec")}, "spec.color", "", blue, []string{"update map[] []"}},
		"another one is ignored in its place":                          {nil, "spec.color", "spec.other", nothing, []string{"update map[] []"}},
		"it is ignored from now on: it was handled":                    {nil, "", "spec.color", blue, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: operator(tt.before, tt.options...), Play: func(s *scene.Stage) {
				s.Begin()
				s.Upgrade(operator(tt.after, tt.options...), func() { tt.away(s) })
				s.Called(tt.want...)
				s.Process.Restart()
				s.Called()
				s.Resize(2)
				s.Settle()
				unkept := len(tt.want) == 0 && tt.before != "" // nothing was kept for the view
				if got := s.Take(); len(got) != 1 || !strings.HasSuffix(got[0], " [change spec.size 1 2]") && (!unkept || got[0] != "update map[] []") {
					t.Errorf("for a change it gets %q", got)
				}
			}})
		})
	}
}

// TestAnIgnoredPathCannotBeAView holds that a path cannot be ignored and be looked at by itself.
func TestAnIgnoredPathCannotBeAView(t *testing.T) {
	tests := map[string]struct {
		options []dsl.Option
		want    string
	}{
		"a field":            {[]dsl.Option{dsl.Field("spec.lastSync")}, "ignore[0]: handler a reads spec.lastSync, so a change of it counts"},
		"a field below it":   {[]dsl.Option{dsl.Field("spec.lastSync.at")}, "ignore[0]: handler a reads spec.lastSync.at, so a change of it counts"},
		"a field around it":  {[]dsl.Option{dsl.Field("spec")}, ""},
		"another one":        {[]dsl.Option{dsl.Field("spec.size")}, ""},
		"an annotation":      {[]dsl.Option{dsl.AnnotationExists("example.com/seen")}, `ignore[1]: handler a reads metadata.annotations["example.com/seen"], so a change of it counts`},
		"another annotation": {[]dsl.Option{dsl.AnnotationExists("example.com/other")}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := dsl.New("op")
			op.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.Ignore = []dsl.Path{{"spec", "lastSync"}, {"metadata", "annotations", "example.com/seen"}}
				foo.OnUpdate("a", scene.Succeeds, tt.options...)
			})
			err := op.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

// TestAPathThatALaterVersionIgnoresIsNoUpdate holds that a resource which ignores a path from a later version on runs no
// handler of cause update for that alone, but one without old: all that is known of what that handled is a digest, which has
// the path in it.
func TestAPathThatALaterVersionIgnoresIsNoUpdate(t *testing.T) {
	away := map[string]func(s *scene.Stage){
		"nothing":       func(*scene.Stage) {},
		"the path":      func(s *scene.Stage) { s.Set("b", "spec", "lastSync") },
		"a label":       func(s *scene.Stage) { s.Set("b", "metadata", "labels", "x") },
		"another field": func(s *scene.Stage) { s.Set("b", "spec", "color") },
	}
	tests := map[string]struct {
		declare func(foo *dsl.Resource, f dsl.Func)
		// runs is for which of the changes while no process runs the handler runs afterwards.
		runs []string
	}{
		"one with old":             {func(foo *dsl.Resource, f dsl.Func) { foo.OnUpdate("a", f) }, []string{"a label", "another field"}},
		"one of a field around it": {func(foo *dsl.Resource, f dsl.Func) { foo.OnField("spec", "a", f) }, []string{"another field"}},
		"one of another field":     {func(foo *dsl.Resource, f dsl.Func) { foo.OnField("spec.size", "a", f) }, nil},
		"one of another field without old": {
			func(foo *dsl.Resource, f dsl.Func) { foo.OnField("spec.size", "a", f, dsl.NoOld()) }, slices.Collect(maps.Keys(away)),
		},
		"one without old": {
			func(foo *dsl.Resource, f dsl.Func) { foo.OnUpdate("a", f, dsl.NoOld()) },
			slices.Collect(maps.Keys(away)),
		},
	}
	for name, test := range tests {
		for what, change := range away {
			t.Run(name+", while "+what+" changes", func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) { test.declare(foo, j.Note("a")) }, Play: func(s *scene.Stage) {
					s.Launch()
					s.Create("{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, lastSync: a}}")
					s.Settle()
					s.Resize(2)
					s.Called("a update")
					if err := s.Process.Stop(); err != nil {
						t.Error(err)
					}
					change(s)
					s.Operator = dsl.New("op")
					s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
						foo.Ignore = append(foo.Ignore, dsl.MustParsePath("spec.lastSync"))
						test.declare(foo, s.Note("a"))
					})
					s.Launch()
					s.Set("c", "spec", "lastSync") // where the generation is as it was, the digest counts until here
					s.Process.Restart()
					s.Set("d", "spec", "lastSync")
					var want []string
					if slices.Contains(test.runs, what) {
						want = []string{"a update"}
					}
					s.Called(want...)
				}})
			})
		}
	}
}
