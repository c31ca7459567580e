// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package outages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// backWithin is how long after the API server answers all that it held up is handled.
const backWithin = 3 * time.Second

// endOutage brings the API server back, and holds that what it held up is handled within backWithin.
func endOutage(s *scene.Stage, handled func(s *scene.Stage) bool) {
	s.T.Helper()
	s.Process.Restore()
	begun := time.Now()
	for !handled(s) && time.Since(begun) < 10*time.Minute {
		s.Advance(50 * time.Millisecond)
	}
	if took := time.Since(begun); took > backWithin {
		s.T.Errorf("it took %v, want %v at most", took, backWithin)
	}
}

// cutOff cuts the operator off from the server. Its watches show a change in the moment before.
func cutOff(s *scene.Stage, change func()) {
	s.T.Helper()
	var ends []func() int
	for _, on := range []struct{ verb, resource string }{{"get", scene.ConfigMaps}, {"patch", scene.Foos + "/status"}, {"patch", scene.Deployments}} {
		ends = append(ends, s.FailWhile(on.verb, on.resource, kit.ErrRefused))
	}
	change()
	s.Advance(time.Second)
	s.Process.Sever()
	for _, end := range ends {
		end()
	}
}

// readsNone is a handler that reads what no cache has.
func readsNone(ctx context.Context, r *dsl.Request) error {
	_, err := r.Client.Get(ctx, scene.ConfigMaps, "default", "none")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// TestAChangeDuringAnOutageIsHandledSoon holds that waits which grew while the API server was away end when it is back:
// those of watches, whatever they are for, and those of handlers and reconciles that failed for that alone.
func TestAChangeDuringAnOutageIsHandledSoon(t *testing.T) {
	ref := func(s *scene.Stage) {
		s.Create(scene.FooWithRef("web", "them"))
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: them}, data: {v: a, for: them}}`)
	}
	configMap := func(s *scene.Stage) {
		s.Update("configmaps.v1", "default", "them", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "b", "data", "v")
		})
	}
	grow := func(s *scene.Stage) { s.Resize(2) }
	tests := map[string]struct {
		operator func(foo *dsl.Resource, j *kit.Journal)
		begin    func(s *scene.Stage)
		away     func(s *scene.Stage) // what is done while the operator reaches no server
		handled  func(s *scene.Stage) bool
	}{
		"of the object": {
			func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("see", j.Note("see")) }, nil, grow,
			func(s *scene.Stage) bool { return len(s.Of("see", "web")) == 1 },
		},
		"of a child, which is put back": {
			func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", scene.KeepsDeployment)
			}, nil,
			func(s *scene.Stage) {
				s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "replicas")
				})
			},
			func(s *scene.Stage) bool {
				n, _, _ := unstructured.NestedInt64(s.Get(scene.Deployments, "default", "web").Object, "spec", "replicas")
				return n == 1
			},
		},
		"of a related object": {
			scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.RelatedChange), ref, configMap,
			func(s *scene.Stage) bool { return slices.Contains(s.Take(), "web related: default/them=b") },
		},
		"of an object of an index": {
			scene.LooksUp(dsl.Create, dsl.IndexChange), ref, configMap,
			func(s *scene.Stage) bool { return slices.Contains(s.Take(), "web index: b") },
		},
		"that is a deletion": {
			func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("see", j.Note("see")) }, nil, (*scene.Stage).Remove,
			func(s *scene.Stage) bool { return s.Web() == nil },
		},
	}
	for name, tt := range tests {
		for _, away := range []time.Duration{20 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprintf("%s, %s", name, away), func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
					s.Operator.Index("owners", scene.ConfigMaps, scene.ValuesByOwner)
					s.Launch()
					if tt.begin == nil {
						tt.begin = func(s *scene.Stage) { s.Create(scene.Web) }
					}
					tt.begin(s)
					s.Advance(time.Minute)
					s.Forget()
					s.Process.Sever()
					s.Advance(away / 2)
					tt.away(s)
					s.Advance(away / 2)
					endOutage(s, tt.handled)
				}})
			})
		}
	}
}

// TestAHandlerThatFailedForAnOutageRunsSoon holds that neither a handler nor a reconcile waits longer than that for having been tried
// again and again while the server was away, and that those attempts use up no retries.
func TestAHandlerThatFailedForAnOutageRunsSoon(t *testing.T) {
	tests := map[string]struct {
		operator func(foo *dsl.Resource, j *kit.Journal)
		handled  func(s *scene.Stage) bool
	}{
		"a handler that writes a child": {
			func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", scene.KeepsDeployment, dsl.Retries(3))
			},
			func(s *scene.Stage) bool {
				child := s.Get(scene.Deployments, "default", "web")
				n, _, _ := unstructured.NestedInt64(child.Object, "spec", "replicas")
				return n == 2
			},
		},
		"a handler that reads": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("read", func(ctx context.Context, r *dsl.Request) error {
					if err := readsNone(ctx, r); err != nil {
						return err
					}
					j.Add("read")
					return nil
				}, dsl.Retries(3), dsl.WithBackoff(time.Minute, time.Hour))
			},
			func(s *scene.Stage) bool { return slices.Contains(s.Take(), "read") },
		},
		"a pass that writes the status": {
			func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
					size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
					r.Patch.SetStatus("size", size)
					return nil
				})
			},
			func(s *scene.Stage) bool {
				n, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "size")
				return n == 2
			},
		},
		"a sub-handler that reads": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("all", func(_ context.Context, r *dsl.Request) error {
					r.Handle("part", func(ctx context.Context, r *dsl.Request) error {
						if err := readsNone(ctx, r); err != nil {
							return err
						}
						j.Add("part")
						return nil
					}, dsl.Retries(3), dsl.WithBackoff(time.Minute, time.Hour))
					return nil
				})
			},
			func(s *scene.Stage) bool { return slices.Contains(s.Take(), "part") },
		},
	}
	for name, tt := range tests {
		for _, away := range []time.Duration{20 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s, %s", name, away), func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(time.Minute)
					s.Forget()
					cutOff(s, func() { s.Resize(2) })
					s.Advance(away)
					endOutage(s, tt.handled)
				}})
			})
		}
	}
}

// TestObjectsAreHandledInTheOrderOfTheirChangesAfterAnOutage holds the order of handling after an outage: what failed in it
// goes first, the one that changed first before the others.
func TestObjectsAreHandledInTheOrderOfTheirChangesAfterAnOutage(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Workers = 1
			foo.OnReconcile("read", func(ctx context.Context, r *dsl.Request) error {
				err := readsNone(ctx, r)
				if err == nil {
					j.Add(r.Object.GetName())
				}
				return err
			})
		},
		Play: func(s *scene.Stage) {
			names := []string{"m", "c", "x", "a", "k", "z", "b"}
			s.Launch()
			for _, name := range names {
				s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
			}
			s.Advance(time.Minute)
			s.Forget()
			grow := func(name string) {
				s.Update(scene.Foos, "default", name, func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, int64(2), "spec", "size")
				})
				s.Advance(time.Second)
			}
			cutOff(s, func() {
				for _, name := range names[:4] {
					grow(name)
				}
			})
			s.Advance(20 * time.Second)
			for _, name := range names[4:] {
				grow(name)
			}
			s.Process.Restore()
			s.Advance(backWithin)
			s.Called(names...)
		},
	})
}
