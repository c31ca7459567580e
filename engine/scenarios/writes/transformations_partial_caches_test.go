// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// shared is web with an entry of somebody else in a list.
const shared = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, color: red, hosts: [theirs]}}`

// labelled is the same with a label.
var labelled = strings.Replace(shared, "name: web", "name: web, labels: {tier: gold}", 1)

// wantsHost is a handler that adds a host.
func wantsHost(host string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Transform(withHost(host))
		return nil
	}
}

// flushes is a daemon that wants something once.
func flushes(j *kit.Journal, want func(*dsl.Patch)) dsl.DaemonFunc {
	return func(ctx context.Context, r *dsl.DaemonRequest) error {
		want(r.Patch)
		if err := r.Flush(ctx); err != nil {
			j.Add(err.Error())
		}
		<-ctx.Done()
		return nil
	}
}

// wantList compares the list that others add to, too.
func wantList(s *scene.Stage, want ...any) {
	s.T.Helper()
	s.Settle()
	got, _, _ := unstructured.NestedSlice(s.Web().Object, "spec", "hosts")
	if diff := cmp.Diff(want, got); diff != "" {
		s.T.Errorf("hosts (-want +got):\n%s", diff)
	}
}

// countReads counts requests that read web. The function that it returns checks how many there were, unless want is less than
// zero.
func countReads(s *scene.Stage) (read func(want int)) {
	s.T.Helper()
	counted := s.FailWhile("get", scene.Foos, nil)
	return func(want int) {
		s.T.Helper()
		s.Settle()
		if got := counted(); got != want && want >= 0 {
			s.T.Errorf("it was read %d times, want %d", got, want)
		}
	}
}

// partialScenario is an operator whose cache may hold no more than what transformations are about, and what happens to it.
type partialScenario struct {
	operator func(foo *dsl.Resource, j *kit.Journal)
	// play gets the number of reads of the object, less than zero if each reconcile reads it.
	play func(reads int)
}

// playWithPartialCaches plays each scenario with each cache. S gets the stage.
func playWithPartialCaches(t *testing.T, s **scene.Stage, tests map[string]partialScenario) {
	t.Helper()
	for name, test := range tests {
		for profile, set := range profiles("spec.hosts", "spec.color", "spec.bad", "status.tried", "status.seen") {
			t.Run(name+", "+profile, func(t *testing.T) {
				operator := func(foo *dsl.Resource, j *kit.Journal) {
					set(foo)
					test.operator(foo, j)
				}
				scene.Play(t, scene.Scenario{Operator: operator, Play: func(of *scene.Stage) {
					*s = of
					test.play(map[string]int{"cache: live": -1}[profile])
				}})
			})
		}
	}
}

// TestTransformationsWithAPartialCache holds that they are made of what is kept of the object, and that nothing is read for them.
func TestTransformationsWithAPartialCache(t *testing.T) {
	var s *scene.Stage
	playWithPartialCaches(t, &s, map[string]partialScenario{
		"two handlers transform it: each sees what others have added, with one request to write": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("one", j.Note("one", wantsHost("one")), dsl.Field("metadata.labels"))
				foo.OnReconcile("two", j.Note("two", wantsHost("two")), dsl.Field("metadata.labels"))
			}, func(reads int) {
				s.Launch()
				read := countReads(s)
				s.Create(labelled)
				s.Called("one create", "two create")
				wantList(s, "theirs", "one", "two")
				s.Wrote("patch foos default/web")
				read(reads)
			},
		},
		"one that has nothing to do writes nothing": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("one", j.Note("one", wantsHost("theirs")))
			},
			func(reads int) {
				s.Launch()
				read := countReads(s)
				s.Create(shared)
				s.Called("one create")
				s.Wrote()
				read(reads)
			},
		},
		"where none transforms, nothing is read": {
			func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("one", j.Note("one")) },
			func(reads int) {
				s.Launch()
				read := countReads(s)
				s.Create(shared)
				s.Called("one create")
				read(reads)
			},
		},
		"somebody adds an entry while the handler runs": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("one", j.Note("one", func(ctx context.Context, r *dsl.Request) error {
					if list, _, _ := unstructured.NestedSlice(s.Web().Object, "spec", "hosts"); len(list) == 1 {
						s.Set([]any{"theirs", "late"}, "spec", "hosts")
					}
					return wantsHost("one")(ctx, r)
				}))
			}, func(int) {
				s.Launch()
				s.Create(shared)
				wantList(s, "theirs", "late", "one")
			},
		},
		"an error of one is the handler's, and the rest of what that wanted is sent": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("tried", r.Attempt)
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/color", Value: "blue"}, dsl.JSONOp{Op: "add", Path: "/spec/hosts/-", Value: "one"})
					return nil
				}), dsl.Retries(1))
			}, func(int) {
				s.Launch()
				s.Create(shared)
				s.Advance(time.Minute)
				s.Called("one create", "one create 2")
				if tried, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "tried"); tried != 2 {
					s.T.Errorf("the object is %v", s.Web().Object)
				}
				wantList(s, "theirs")
			},
		},
		"the server refuses what another handler wants": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("one", j.Note("one", wantsHost("one")))
				foo.OnCreate("bad", func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.bad", "yes"); return nil }, dsl.Retries(1))
				foo.OnCreate("two", j.Note("two", wantsHost("two")))
			}, func(int) {
				s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
					if _, bad, _ := unstructured.NestedString(o.Object, "spec", "bad"); bad {
						return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
					}
					return nil
				})
				s.Launch()
				s.Create(shared)
				s.Advance(10 * time.Minute)
				wantList(s, "theirs", "one", "two")
			},
		},
		"a sub-handler and a step transform it": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("parts", func(_ context.Context, r *dsl.Request) error {
					r.Handle("one", wantsHost("one"))
					return nil
				})
				foo.OnCreate("steps", dsl.Steps(wantsHost("two"), wantsHost("three")))
			}, func(reads int) {
				s.Launch()
				read := countReads(s)
				s.Create(shared)
				wantList(s, "theirs", "one", "two", "three")
				read(reads)
			},
		},
		"it is gone from sight": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.LabelSelector = "tier=gold"
				foo.OnDelete("leave", j.Note("leave", func(_ context.Context, r *dsl.Request) error {
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/color", Value: "red"}, dsl.JSONOp{Op: "add", Path: "/spec/hosts/-", Value: "one"})
					return nil
				}), dsl.Retries(0))
			}, func(int) {
				s.Launch()
				s.Create(labelled)
				s.Settle()
				s.LabelTier("")
				s.Advance(time.Minute)
				s.Called("leave delete")
				s.WantFinalizers()
				wantList(s, "theirs")
			},
		},
		"an action of a machine transforms it": {
			func(foo *dsl.Resource, j *kit.Journal) {
				if len(foo.Keep) > 0 {
					foo.Keep = append(foo.Keep, dsl.Path{"status"})
				}
				foo.Machine(dsl.Machine{States: []dsl.State{
					{Name: "New", Enter: func(_ context.Context, r *dsl.Request) error {
						j.Add("enters")
						r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/status/state", Value: "New"}, dsl.JSONOp{Op: "test", Path: "/spec/color", Value: "red"})
						r.Patch.Transform(withHost("one"))
						return nil
					}, Transitions: []dsl.Transition{{To: "Old"}}},
					{Name: "Old", Terminal: true},
				}})
			}, func(int) {
				s.Launch()
				s.Create(shared)
				s.Called("enters")
				wantList(s, "theirs", "one")
				s.WantState("Old")
			},
		},
	})
}

// TestTransformationsOfADaemonWithAPartialCache holds the same of daemons.
func TestTransformationsOfADaemonWithAPartialCache(t *testing.T) {
	var s *scene.Stage
	playWithPartialCaches(t, &s, map[string]partialScenario{
		"a transformation of a daemon fails, and the rest of what that wants is sent": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
					r.Patch.SetStatus("seen", true)
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/color", Value: "blue"}, dsl.JSONOp{Op: "add", Path: "/spec/hosts/-", Value: "one"})
					if err := r.Flush(ctx); err != nil && strings.Contains(err.Error(), "testing value /spec/color failed") {
						j.Add("it fails")
					}
					<-ctx.Done()
					return nil
				})
			}, func(int) {
				s.Launch()
				s.Create(shared)
				s.Called("it fails")
				wantList(s, "theirs")
				if seen := scene.ValueAt(s.Web(), "status.seen"); seen != true {
					s.T.Errorf("its status is %v", s.Web().Object["status"])
				}
			},
		},
		"somebody writes while a daemon does": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.Daemon("watch", flushes(j, func(p *dsl.Patch) {
					late := false
					p.Transform(func(o *unstructured.Unstructured) error {
						if !late {
							late = true
							s.Set([]any{"theirs", "late"}, "spec", "hosts")
						}
						return withHost("one")(o)
					})
				}))
			}, func(int) {
				s.Launch()
				s.Create(shared)
				s.Called()
				wantList(s, "theirs", "late", "one")
			},
		},
		"a daemon transforms it": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.Daemon("watch", flushes(j, func(p *dsl.Patch) {
					p.Transform(withHost("one"))
					p.SetStatus("seen", true)
				}))
			}, func(int) {
				s.Launch()
				s.Create(shared)
				s.Called()
				wantList(s, "theirs", "one")
			},
		},
	})
}
