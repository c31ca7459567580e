// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// edges declares one handler for each cause.
func edges(foo *dsl.Resource, j *journal) {
	foo.OnCreate("made", j.Note("made"))
	foo.OnUpdate("changed", j.Note("changed"))
	foo.OnField("spec.size", "sized", j.Note("sized"))
	foo.OnResume("back", j.Note("back"))
	foo.OnDelete("left", j.Note("left"))
}

func level(foo *dsl.Resource, j *journal) { foo.OnReconcile("sync", j.Note("sync")) }

func TestCausesOfEdgeHandlers(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a new object is a create": {edges, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("made create")
		}},
		"an object that was there before the first start is a create": {edges, func(s *stage) {
			s.Create(web)
			s.Launch()
			s.Called("made create")
		}},
		"a changed field is an update for the handlers that see it": {edges, func(s *stage) {
			s.begin()
			s.set("blue", "spec", "color")
			s.Called("changed update")
			s.size(2)
			s.Called("changed update", "sized update")
		}},
		"a field that goes and one that comes is a change of it": {edges, func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "spec", "size")
			})
			s.Called("changed update", "sized update")
			s.size(1)
			s.Called("changed update", "sized update")
		}},
		"a label or an annotation is part of the essence": {edges, func(s *stage) {
			s.begin()
			s.set("x", "metadata", "labels", "tier")
			s.Called("changed update")
			s.set("x", "metadata", "annotations", "note")
			s.Called("changed update")
		}},
		"status, owners and bookkeeping of others are no change": {edges, func(s *stage) {
			s.begin()
			s.set("x", "status", "phase")
			s.set("x", "metadata", "annotations", "kopf.zalando.org/last-handled-configuration")
			s.set("x", "metadata", "annotations", "other.handwerk.dev/state")
			s.set([]any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}}, "metadata", "ownerReferences")
			s.Called()
		}},
		"a deleted object is a delete and nothing else": {edges, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("left delete")
		}},
		"after a restart an object that is the same is a resume": {edges, func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Called("back resume")
		}},
		"what changed while the operator was away is an update, what came a create, what goes a delete": {edges, func(s *stage) {
			s.begin()
			stop(s)
			s.size(2)
			s.Process.Restart()
			s.Called("changed update", "sized update", "back resume")
			stop(s)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.remove()
			s.Process.Restart()
			s.Settle()
			s.CalledInAnyOrder("left delete", "made create")
		}},
	})
}

func TestCausesOfLevelHandlers(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a new object is a create, a changed one an update": {level, func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Forget()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.Called("sync create")
			s.size(2)
			s.Called("sync update")
		}},
		"an object that was there at the start is a resume, for nothing is stored": {level, func(s *stage) {
			s.Create(web)
			s.Launch()
			s.Called("sync resume")
		}},
		"an object that was there at the start is a create where others store what was handled": {
			func(foo *dsl.Resource, j *journal) {
				level(foo, j)
				foo.OnCreate("made", j.Note("made"))
			},
			func(s *stage) {
				s.Create(web)
				s.Launch()
				s.Called("sync create", "made create")
				s.Process.Restart()
				s.Called("sync resume")
			},
		},
		"status and deletion are no cause": {
			func(foo *dsl.Resource, j *journal) {
				level(foo, j)
				foo.OnDelete("left", j.Note("left"))
			},
			func(s *stage) {
				s.begin()
				s.set("x", "status", "phase")
				s.Called()
				s.remove()
				s.Called("left delete")
			},
		},
		"with a field it runs only where the field is, and when it changes": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("sync", j.Note("sync"), dsl.Field("spec.size"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {color: red}}`)
				s.Called()
				s.size(1)
				s.Called("sync update")
				s.set("blue", "spec", "color")
				s.Called()
				s.Process.Restart()
				s.Called("sync resume")
			},
		},
	})
}

func TestHandlersThatAreNewToAnObject(t *testing.T) {
	scenarios(t, map[string]scenario{
		"get no create for what was handled before, but everything else": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.begin()
				stop(s)
				s.Operator = dsl.New("op")
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					edges(foo, &s.Journal)
					foo.OnCreate("newer", s.Note("newer"))
					level(foo, &s.Journal)
				})
				s.Launch()
				s.Called("back resume", "sync resume")
				s.size(2)
				s.Called("changed update", "sized update", "sync update")
			},
		},
	})
}

func TestFilters(t *testing.T) {
	gold := func(foo *dsl.Resource, j *journal) {
		foo.OnCreate("made", j.Note("made"), dsl.Label("tier", "gold"))
		foo.OnUpdate("changed", j.Note("changed"), dsl.Label("tier", "gold"))
		foo.OnReconcile("sync", j.Note("sync"), dsl.When(func(r *dsl.Subject) (bool, error) {
			size, _, err := unstructured.NestedInt64(r.Object.Object, "spec", "size")
			return size > 1, err
		}))
	}
	scenarios(t, map[string]scenario{
		"an object that no handler sees is left without a mark": {gold, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called()
			s.Wrote()
		}},
		"an object that is seen later is new then": {gold, func(s *stage) {
			s.begin()
			s.set("gold", "metadata", "labels", "tier")
			s.Called("made create")
			s.set("blue", "spec", "color")
			s.Called("changed update")
		}},
		"a predicate is asked about the object as it is": {gold, func(s *stage) {
			s.begin()
			s.size(2)
			s.Called("sync create")
			s.size(3)
			s.Called("sync update")
			s.size(1)
			s.Called()
		}},
	})
}

func TestResync(t *testing.T) {
	scenarios(t, map[string]scenario{
		"each object is looked at again once a period": {
			func(foo *dsl.Resource, j *journal) {
				foo.Resync = time.Hour
				foo.OnResync("again", j.Note("again"))
				level(foo, j)
			},
			func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Called("again resync", "sync resync")
				for range 10 {
					s.Advance(time.Hour)
				}
				if n := len(s.Take()); n < 20 || n > 24 {
					s.t.Errorf("%d calls of two handlers in ten hours, want 20 to 24: jitter is a tenth at most", n)
				}
				s.Wrote()
			},
		},
	})
}

// stop stops the operator.
func stop(s *stage) {
	s.t.Helper()
	if err := s.Process.Stop(); err != nil {
		s.t.Error(err)
	}
}
