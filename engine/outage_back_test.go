// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// backWithin is how long after the API server answers all that it held up is handled.
const backWithin = 3 * time.Second

// backSoon brings the API server back, and holds that what it held up is handled within backWithin.
func (s *stage) backSoon(handled func(s *stage) bool) {
	s.t.Helper()
	s.Process.Restore()
	begun := time.Now()
	for !handled(s) && time.Since(begun) < 10*time.Minute {
		s.Advance(50 * time.Millisecond)
	}
	if took := time.Since(begun); took > backWithin {
		s.t.Errorf("it took %v, want %v at most", took, backWithin)
	}
}

// sever cuts the operator off from the server. Its watches show a change in the moment before.
func (s *stage) sever(change func()) {
	s.t.Helper()
	var ends []func() int
	for _, on := range []struct{ verb, resource string }{{"get", configMaps}, {"patch", foos + "/status"}, {"patch", deployments}} {
		ends = append(ends, s.FailWhile(on.verb, on.resource, enginetest.ErrRefused))
	}
	change()
	s.Advance(time.Second)
	s.Process.Sever()
	for _, end := range ends {
		end()
	}
}

// readsNone is a handler that reads what no cache has.
func readsNone(ctx ctx, r *dsl.Request) error {
	_, err := r.Client.Get(ctx, configMaps, "default", "none")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// TestAChangeDuringAnOutageIsHandledSoon holds that waits which grew while the API server was away end when it is back:
// those of watches, whatever they are for, and those of handlers and passes that failed for that alone.
func TestAChangeDuringAnOutageIsHandledSoon(t *testing.T) {
	ref := func(s *stage) {
		s.Create(foo("web", "them"))
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: them}, data: {v: a, for: them}}`)
	}
	configMap := func(s *stage) {
		s.Update("configmaps.v1", "default", "them", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "b", "data", "v")
		})
	}
	grow := func(s *stage) { s.size(2) }
	tests := map[string]struct {
		operator func(foo *dsl.Resource, j *journal)
		begin    func(s *stage)
		away     func(s *stage) // what is done while the operator reaches no server
		handled  func(s *stage) bool
	}{
		"of the object": {
			func(foo *dsl.Resource, j *journal) { foo.OnUpdate("see", j.Note("see")) }, nil, grow,
			func(s *stage) bool { return len(s.Of("see", "web")) == 1 },
		},
		"of a child, which is put back": {
			func(foo *dsl.Resource, _ *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", keepsChild)
			}, nil,
			func(s *stage) {
				s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "replicas")
				})
			},
			func(s *stage) bool {
				n, _, _ := unstructured.NestedInt64(s.Get(deployments, "default", "web").Object, "spec", "replicas")
				return n == 1
			},
		},
		"of a related object": {
			relates(dsl.Relation{Select: byName}, dsl.RelatedChange), ref, configMap,
			func(s *stage) bool { return slices.Contains(s.Take(), "web related: default/them=b") },
		},
		"of an object of an index": {
			looksUp(dsl.Create, dsl.IndexChange), ref, configMap,
			func(s *stage) bool { return slices.Contains(s.Take(), "web index: b") },
		},
		"that is a deletion": {
			func(foo *dsl.Resource, j *journal) { foo.OnDelete("see", j.Note("see")) }, nil, (*stage).remove,
			func(s *stage) bool { return s.web() == nil },
		},
	}
	for name, tt := range tests {
		for _, away := range []time.Duration{20 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprintf("%s, %s", name, away), func(t *testing.T) {
				perform(t, scenario{tt.operator, func(s *stage) {
					s.Operator.Index("owners", configMaps, byOwner)
					s.Launch()
					if tt.begin == nil {
						tt.begin = func(s *stage) { s.Create(web) }
					}
					tt.begin(s)
					s.Advance(time.Minute)
					s.Forget()
					s.Process.Sever()
					s.Advance(away / 2)
					tt.away(s)
					s.Advance(away / 2)
					s.backSoon(tt.handled)
				}})
			})
		}
	}
}

// TestAHandlerThatFailedForAnOutageRunsSoon holds that neither a handler nor a pass waits longer than that for having been tried
// again and again while the server was away, and that those attempts use up no retries.
func TestAHandlerThatFailedForAnOutageRunsSoon(t *testing.T) {
	tests := map[string]struct {
		operator func(foo *dsl.Resource, j *journal)
		handled  func(s *stage) bool
	}{
		"a handler that writes a child": {
			func(foo *dsl.Resource, _ *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", keepsChild, dsl.Retries(3))
			},
			func(s *stage) bool {
				child := s.Get(deployments, "default", "web")
				n, _, _ := unstructured.NestedInt64(child.Object, "spec", "replicas")
				return n == 2
			},
		},
		"a handler that reads": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("read", func(ctx ctx, r *dsl.Request) error {
					if err := readsNone(ctx, r); err != nil {
						return err
					}
					j.Add("read")
					return nil
				}, dsl.Retries(3), dsl.WithBackoff(time.Minute, time.Hour))
			},
			func(s *stage) bool { return slices.Contains(s.Take(), "read") },
		},
		"a pass that writes the status": {
			func(foo *dsl.Resource, _ *journal) {
				foo.OnReconcile("status", func(_ ctx, r *dsl.Request) error {
					size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
					r.Patch.SetStatus("size", size)
					return nil
				})
			},
			func(s *stage) bool {
				n, _, _ := unstructured.NestedInt64(s.web().Object, "status", "size")
				return n == 2
			},
		},
		"a sub-handler that reads": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("all", func(_ ctx, r *dsl.Request) error {
					r.Handle("part", func(ctx ctx, r *dsl.Request) error {
						if err := readsNone(ctx, r); err != nil {
							return err
						}
						j.Add("part")
						return nil
					}, dsl.Retries(3), dsl.WithBackoff(time.Minute, time.Hour))
					return nil
				})
			},
			func(s *stage) bool { return slices.Contains(s.Take(), "part") },
		},
	}
	for name, tt := range tests {
		for _, away := range []time.Duration{20 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s, %s", name, away), func(t *testing.T) {
				perform(t, scenario{tt.operator, func(s *stage) {
					s.Launch()
					s.Create(web)
					s.Advance(time.Minute)
					s.Forget()
					s.sever(func() { s.size(2) })
					s.Advance(away)
					s.backSoon(tt.handled)
				}})
			})
		}
	}
}

// TestWhatWaitedForTheServerGoesByWhenItChanged holds the order of handling after an outage: what failed in it goes first, the one
// that changed first before the others.
func TestWhatWaitedForTheServerGoesByWhenItChanged(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) {
			foo.Workers = 1
			foo.OnReconcile("read", func(ctx ctx, r *dsl.Request) error {
				err := readsNone(ctx, r)
				if err == nil {
					j.Add(r.Object.GetName())
				}
				return err
			})
		},
		func(s *stage) {
			names := []string{"m", "c", "x", "a", "k", "z", "b"}
			s.Launch()
			for _, name := range names {
				s.Create(strings.Replace(web, "name: web", "name: "+name, 1))
			}
			s.Advance(time.Minute)
			s.Forget()
			grow := func(name string) {
				s.Update(foos, "default", name, func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, int64(2), "spec", "size")
				})
				s.Advance(time.Second)
			}
			s.sever(func() {
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
