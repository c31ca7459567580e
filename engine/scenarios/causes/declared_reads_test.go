// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestTheViewOfAHandlerThatSaysWhatItReads holds that such a handler in Go runs for changes of what it reads, and of labels and
// annotations, which it always sees; also when another handler of the resource does not say what it reads.
func TestTheViewOfAHandlerThatSaysWhatItReads(t *testing.T) {
	always := []string{"metadata.labels.tier", "metadata.labels.other", "metadata.annotations.note"}
	level := []dsl.Cause{dsl.Create, dsl.Update, dsl.Resume}
	for name, test := range map[string]struct {
		causes  []dsl.Cause
		options []dsl.Option
		runs    []string
	}{
		"a level-triggered handler, with a field of status": {level, []dsl.Option{dsl.Reads("spec.size", "status.phase")}, append([]string{"spec.size", "status.phase"}, always...)},
		"a handler of create and update":                    {scene.CreateAndUpdate(), []dsl.Option{dsl.Reads("spec.size")}, append([]string{"spec.size"}, always...)},
		"… of which changes of the status are none":         {scene.CreateAndUpdate(), []dsl.Option{dsl.Reads("spec.size", "status.phase")}, append([]string{"spec.size"}, always...)},
		"a handler of update that needs no old object":      {[]dsl.Cause{dsl.Update}, []dsl.Option{dsl.Reads("spec.sizes"), dsl.NoOld()}, append([]string{"spec.sizes.s", "spec.sizes.l"}, always...)},
		"one that names a field besides":                    {scene.CreateAndUpdate(), []dsl.Option{dsl.Reads("spec.size"), dsl.Field("spec.color")}, []string{"spec.color"}},
	} {
		for beside, also := range map[string]func(*dsl.Resource){
			"alone": func(*dsl.Resource) {},
			"beside one that may read all": func(foo *dsl.Resource) {
				foo.OnDelete("leave", scene.Succeeds, dsl.NoFinalizer())
			},
		} {
			t.Run(name+", "+beside, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.On(test.causes, "look", j.Note("look"), test.options...)
					also(foo)
				}, Play: func(s *scene.Stage) {
					s.Create(furnished)
					s.Launch()
					wantRunsFor(s, "look", test.runs, nil)
				}})
			})
		}
	}
}

// typedWeb is a Foo with the one field that a typed handler reads.
type typedWeb struct {
	Spec struct {
		Size int64 `json:"size"`
	} `json:"spec"`
	Status struct {
		Seen int64 `json:"seen,omitempty"`
	} `json:"status,omitzero"`
}

// TestHandlersThatSayWhatTheyRead holds what such handlers see, and what is written and read for them.
func TestHandlersThatSayWhatTheyRead(t *testing.T) {
	notes := func(j *kit.Journal) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			j.Add(fmt.Sprint(r.Handler, " ", r.Cause, " ", r.Object.Object["spec"], " ", r.Object.GetLabels(), " ", r.Diff))
			return nil
		}
	}
	read := func(s *scene.Stage) func() int { return s.FailWhile("get", scene.Foos, nil) }
	gold := func(s *scene.Stage) { s.LabelTier("gold") }
	tests := map[string]scene.Scenario{
		"they see no other fields, whatever the cache holds, and the difference of these": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "a", notes(j), dsl.Reads("spec.size"))
				foo.OnDelete("leave", scene.Succeeds)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create map[size:1] map[] []")
				s.Set("blue", "spec", "color")
				s.Called()
				s.Process.Restart()
				s.Resize(2)
				s.Called("a update map[size:2] map[] [{change spec.size 1 2}]")
				gold(s)
				s.Called("a update map[size:2] map[tier:gold] [{add metadata.labels <nil> map[tier:gold]}]")
			},
		},
		"a handler of create runs for an object without the field": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made"), dsl.Reads("spec.none"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("made create")
			},
		},
		"what one sets and lists is neither written again nor read": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("report", j.Note("report", scene.ReportsSize), dsl.Reads("spec.size", "status.size"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				reads := read(s)
				s.Create(scene.Web)
				s.Wrote("patch foos/status default/web")
				s.Process.Restart()
				s.Called("report create", "report resume")
				s.Set(int64(7), "status", "size")
				s.Called("report update")
				s.Wrote("patch foos/status default/web")
				if n := reads(); n != 0 {
					s.T.Errorf("it was read %d times, want none", n)
				}
			},
		},
		"the type of a typed handler says what it reads and sets": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("typed", dsl.Typed(func(_ context.Context, r *dsl.TypedRequest[typedWeb]) error {
					j.Add(fmt.Sprint(r.Cause, " ", r.Object.Spec.Size))
					r.Object.Status.Seen = r.Object.Spec.Size
					return nil
				}), dsl.Reads())
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				reads := read(s)
				s.Create(scene.Web)
				s.Called("create 1")
				s.Set("blue", "spec", "color")
				s.Called()
				s.Resize(2)
				s.Called("update 2")
				s.Wrote("patch foos/status default/web", "patch foos/status default/web")
				if n := reads(); n != 0 {
					s.T.Errorf("it was read %d times, want none", n)
				}
			},
		},
		"timers, daemons and handlers of deletions say it, too": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Every(time.Minute, "beat", j.Note("beat"), dsl.Reads("spec.size"))
				foo.OnDelete("leave", j.Note("leave"), dsl.Reads("spec.size"))
				foo.Daemon("stay", func(ctx context.Context, r *dsl.DaemonRequest) error {
					<-r.Changes()
					j.Add(fmt.Sprint("stays with ", scene.SizeOf(r.Current())))
					r.Patch.SetStatus("kept", true)
					if err := r.Flush(ctx); err != nil {
						j.Add(err.Error())
					}
					<-ctx.Done()
					return nil
				}, dsl.Reads("spec.size", "status.kept"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				s.Resize(3)
				s.Called("stays with 3")
				s.WantField("status.kept", true)
				s.WantField("spec.color", "red")
				s.Remove()
				s.Settle()
				s.WantGone()
			},
		},
		"a function for a transformation sees what the cache holds": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("mix", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Transform(func(o *unstructured.Unstructured) error {
						j.Add(fmt.Sprint(scene.ValueAt(o, "spec.size"), scene.ValueAt(o, "spec.color")))
						return nil
					})
					return nil
				}, dsl.Reads("spec.size"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("1 <nil>")
			},
		},
	}
	for name, test := range tests {
		play := test.Play
		test.Play = func(s *scene.Stage) { asInACluster(s); play(s) }
		tests[name] = test
	}
	scene.PlayAll(t, tests)
}

// asInACluster has the cache hold what handlers say that they read, and no other fields. In a test it holds them to find out who
// reads them.
func asInACluster(s *scene.Stage) {
	s.Adjust = append(s.Adjust, func(e *engine.Settings) { e.Missed = nil })
}

// TestAnOperatorThatComesToSayWhatItReads holds that nothing runs for that alone where the old object is kept, and that later
// changes of what is listed are found.
func TestAnOperatorThatComesToSayWhatItReads(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("see", scene.NotesOld(j)) },
		Play: func(s *scene.Stage) {
			asInACluster(s)
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.Resize(2)
			s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
			s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("see", scene.NotesOld(j), dsl.Reads("spec.size"))
			}, func() { s.Set("blue", "spec", "color") })
			s.Called()
			s.Resize(3)
			s.Called("update map[spec:map[size:2]] [change spec.size 2 3]")
		},
	})
}
