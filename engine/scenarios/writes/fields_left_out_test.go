// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAWriteOfAFieldThatIsNotKeptFailsForGood holds that code may change what the cache holds, and nothing else: its handler fails for
// good, says which field it is, and nothing of its patch is sent. The object is not read for that.
func TestAWriteOfAFieldThatIsNotKeptFailsForGood(t *testing.T) {
	size := func(foo *dsl.Resource) { foo.Keep = []dsl.Path{{"spec", "size"}} }
	metadata := func(foo *dsl.Resource) { foo.Cache = dsl.CacheMetadata }
	wants := func(want func(p *dsl.Patch)) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Label("tier", "gold")
				want(r.Patch)
				return nil
			}))
		}
	}
	const leavesColor = "changing the object: keep leaves spec.color out of the cache: add spec.color to it"
	for name, tt := range map[string]struct {
		hold    func(*dsl.Resource)
		declare func(*dsl.Resource, *kit.Journal)
		want    string
	}{
		"a field is set":             {size, wants(func(p *dsl.Patch) { p.Set("spec.color", "blue") }), leavesColor},
		"a field is removed":         {size, wants(func(p *dsl.Patch) { p.Remove("spec.color") }), leavesColor},
		"a field of status":          {size, wants(func(p *dsl.Patch) { p.SetStatus("seen", 1) }), "keep leaves status.seen out of the cache"},
		"a map that is kept in part": {size, wants(func(p *dsl.Patch) { p.Remove("spec") }), "keep leaves spec out of the cache"},
		"steps replace a map that is kept in part": {size, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("one", dsl.Steps(
				j.Note("one", func(_ context.Context, r *dsl.Request) error { r.Patch.Remove("spec"); return nil }),
				func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.size", 1); return nil },
			))
		}, "keep leaves spec out of the cache"},
		"several fields": {
			size, wants(func(p *dsl.Patch) { p.Set("spec", map[string]any{"size": 2, "hosts": []any{}, "color": "blue"}) }),
			"keep leaves spec.color, spec.hosts out of the cache: add spec.color, spec.hosts to it",
		},
		"a transformation changes it": {size, wants(func(p *dsl.Patch) { p.Transform(withHost("one")) }), "keep leaves spec.hosts out of the cache"},
		"a JSON patch changes it": {
			size, wants(func(p *dsl.Patch) { p.JSON(dsl.JSONOp{Op: "add", Path: "/spec/color", Value: "blue"}) }), leavesColor,
		},
		"the cache holds metadata": {
			metadata, wants(func(p *dsl.Patch) { p.Set("spec.color", "blue") }), "cache metadata does not hold spec.color: take cache compact, with keep",
		},
		"a condition, and the cache holds metadata": {
			metadata, wants(func(p *dsl.Patch) { p.SetCondition("Done", metav1.ConditionTrue, "Yes", "") }), "cache metadata does not hold status.conditions",
		},
		"all handlers say what they read": {
			func(*dsl.Resource) {}, func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("one", j.Note("one", scene.ReportsSize), dsl.Reads("spec.size"))
			}, "handler one does not say that it reads status.size: add status.size to its Reads",
		},
		"a handler that fails sets it": {size, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("error", "again")
				return scene.ErrAgain
			}))
		}, "keep leaves status.error out of the cache"},
		"a sub-handler sets it": {size, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.color", "blue"); return nil })
				return nil
			}))
		}, leavesColor},
		"an action of a machine sets it": {func(foo *dsl.Resource) { foo.Keep = []dsl.Path{{"spec", "size"}, {"status"}} }, func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "New", Enter: func(_ context.Context, r *dsl.Request) error {
					j.Add("one create")
					r.Patch.Label("tier", "gold")
					r.Patch.Set("spec.color", "blue")
					return nil
				}, Transitions: []dsl.Transition{{To: "Old"}}},
				{Name: "Old", Terminal: true},
			}})
		}, leavesColor},
		"a daemon sets it": {size, func(foo *dsl.Resource, j *kit.Journal) {
			foo.Daemon("one", func(ctx context.Context, r *dsl.DaemonRequest) error {
				j.Add("one create")
				r.Patch.Label("tier", "gold")
				r.Patch.Set("spec.color", "blue")
				return r.Flush(ctx)
			})
		}, leavesColor},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator = dsl.New("op")
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					tt.hold(foo)
					tt.declare(foo, &s.Journal)
				})
				var all scene.Texts
				all.Launch(s)
				read := countReads(s)
				s.Create(shared)
				s.Advance(time.Hour)
				if text := all.All(s, scene.Foos); !strings.Contains(text, tt.want) {
					t.Errorf("nothing says %q:\n%s", tt.want, text)
				}
				s.Called("one create")
				read(0)
				s.WantField("spec.color", "red")
				wantList(s, "theirs")
				if tier := s.Web().GetLabels()["tier"]; tier != "" {
					t.Error("a part of the patch was sent")
				}
			})
		})
	}
}

// TestATransformationSeesWhatIsKept holds that a transformation gets the fields that the cache holds, when it is made first and when
// somebody has written meanwhile, and that its changes of these are sent without a read.
func TestATransformationSeesWhatIsKept(t *testing.T) {
	var s *scene.Stage
	grow := func(j *kit.Journal, meanwhile func()) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			meanwhile()
			r.Patch.Transform(func(o *unstructured.Unstructured) error {
				spec, _, _ := unstructured.NestedMap(o.Object, "spec")
				for _, field := range []string{"color", "hosts"} {
					if spec[field] != nil {
						j.Add("sees " + field)
					}
				}
				size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
				return unstructured.SetNestedField(o.Object, max(size, 10), "spec", "size")
			})
			return nil
		}
	}
	holds := map[string]func(foo *dsl.Resource) []dsl.Option{
		"of the resource": func(foo *dsl.Resource) []dsl.Option {
			foo.Keep = []dsl.Path{{"spec", "size"}}
			return nil
		},
		"of its handlers": func(*dsl.Resource) []dsl.Option { return []dsl.Option{dsl.Reads("spec.size")} },
	}
	plays := map[string]func(on *scene.Stage) (reads int){
		"nobody else writes": func(*scene.Stage) int { return 0 },
		"somebody writes":    func(on *scene.Stage) int { on.Set("blue", "spec", "color"); return 1 },
	}
	for held, hold := range holds {
		for what, meanwhile := range plays {
			t.Run(held+", "+what, func(t *testing.T) {
				reads := 0
				scene.Play(t, scene.Scenario{
					Operator: func(foo *dsl.Resource, j *kit.Journal) {
						options := hold(foo)
						foo.OnCreate("one", j.Note("one", grow(j, func() { reads = meanwhile(s) })), slices.Concat(options, []dsl.Option{dsl.Field("spec.size")})...)
					}, Play: func(on *scene.Stage) {
						s = on
						s.Launch()
						read := countReads(s)
						s.Create(shared)
						s.Called("one create")
						s.WantField("spec.size", int64(10))
						wantList(s, "theirs")
						read(reads)
					},
				})
			})
		}
	}
}
