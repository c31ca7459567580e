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
	foo.OnCreate("made", j.note("made"))
	foo.OnUpdate("changed", j.note("changed"))
	foo.OnField("spec.size", "sized", j.note("sized"))
	foo.OnResume("back", j.note("back"))
	foo.OnDelete("left", j.note("left"))
}

func level(foo *dsl.Resource, j *journal) { foo.OnReconcile("sync", j.note("sync")) }

func TestCausesOfEdgeHandlers(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a new object is a create": {edges, func(s *stage) {
			s.start()
			s.Create(web)
			s.calls("made create")
		}},
		"an object that was there before the first start is a create": {edges, func(s *stage) {
			s.Create(web)
			s.start()
			s.calls("made create")
		}},
		"a changed field is an update for the handlers that see it": {edges, func(s *stage) {
			s.begin()
			s.set("blue", "spec", "color")
			s.calls("changed update")
			s.size(2)
			s.calls("changed update", "sized update")
		}},
		"a field that goes and one that comes is a change of it": {edges, func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "spec", "size")
			})
			s.calls("changed update", "sized update")
			s.size(1)
			s.calls("changed update", "sized update")
		}},
		"a label or an annotation is part of the essence": {edges, func(s *stage) {
			s.begin()
			s.set("x", "metadata", "labels", "tier")
			s.calls("changed update")
			s.set("x", "metadata", "annotations", "note")
			s.calls("changed update")
		}},
		"status, owners and bookkeeping of others are no change": {edges, func(s *stage) {
			s.begin()
			s.set("x", "status", "phase")
			s.set("x", "metadata", "annotations", "kopf.zalando.org/last-handled-configuration")
			s.set("x", "metadata", "annotations", "other.handwerk.dev/state")
			s.set([]any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}}, "metadata", "ownerReferences")
			s.calls()
		}},
		"a deleted object is a delete and nothing else": {edges, func(s *stage) {
			s.begin()
			s.remove()
			s.calls("left delete")
		}},
		"after a restart an object that is the same is a resume": {edges, func(s *stage) {
			s.begin()
			s.p.Restart()
			s.calls("back resume")
		}},
		"what changed while the operator was away is an update, what came a create, what goes a delete": {edges, func(s *stage) {
			s.begin()
			stop(s)
			s.size(2)
			s.p.Restart()
			s.calls("changed update", "sized update", "back resume")
			stop(s)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.remove()
			s.p.Restart()
			s.Settle()
			sorted(s, "left delete", "made create")
		}},
	})
}

func TestCausesOfLevelHandlers(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a new object is a create, a changed one an update": {level, func(s *stage) {
			s.begin()
			s.p.Restart()
			s.forget()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.calls("sync create")
			s.size(2)
			s.calls("sync update")
		}},
		"an object that was there at the start is a resume, for nothing is stored": {level, func(s *stage) {
			s.Create(web)
			s.start()
			s.calls("sync resume")
		}},
		"an object that was there at the start is a create where others store what was handled": {
			func(foo *dsl.Resource, j *journal) {
				level(foo, j)
				foo.OnCreate("made", j.note("made"))
			},
			func(s *stage) {
				s.Create(web)
				s.start()
				s.calls("sync create", "made create")
				s.p.Restart()
				s.calls("sync resume")
			},
		},
		"status and deletion are no cause": {
			func(foo *dsl.Resource, j *journal) {
				level(foo, j)
				foo.OnDelete("left", j.note("left"))
			},
			func(s *stage) {
				s.begin()
				s.set("x", "status", "phase")
				s.calls()
				s.remove()
				s.calls("left delete")
			},
		},
		"with a field it runs only where the field is, and when it changes": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("sync", j.note("sync"), dsl.Field("spec.size"))
			},
			func(s *stage) {
				s.start()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {color: red}}`)
				s.calls()
				s.size(1)
				s.calls("sync update")
				s.set("blue", "spec", "color")
				s.calls()
				s.p.Restart()
				s.calls("sync resume")
			},
		},
	})
}

func TestHandlersThatAreNewToAnObject(t *testing.T) {
	scenarios(t, map[string]scenario{
		"get no create for what was handled before, but everything else": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.note("made")) },
			func(s *stage) {
				s.begin()
				stop(s)
				s.op = dsl.New("op")
				s.op.Resource(foos, func(foo *dsl.Resource) {
					edges(foo, s.journal)
					foo.OnCreate("newer", s.journal.note("newer"))
					level(foo, s.journal)
				})
				s.start()
				s.calls("back resume", "sync resume")
				s.size(2)
				s.calls("changed update", "sized update", "sync update")
			},
		},
	})
}

func TestFilters(t *testing.T) {
	gold := func(foo *dsl.Resource, j *journal) {
		foo.OnCreate("made", j.note("made"), dsl.Label("tier", "gold"))
		foo.OnUpdate("changed", j.note("changed"), dsl.Label("tier", "gold"))
		foo.OnReconcile("sync", j.note("sync"), dsl.When(func(r *dsl.Request) (bool, error) {
			size, _, err := unstructured.NestedInt64(r.Object.Object, "spec", "size")
			return size > 1, err
		}))
	}
	scenarios(t, map[string]scenario{
		"an object that no handler sees is left without a mark": {gold, func(s *stage) {
			s.start()
			s.Create(web)
			s.calls()
			s.writes()
		}},
		"an object that is seen later is new then": {gold, func(s *stage) {
			s.begin()
			s.set("gold", "metadata", "labels", "tier")
			s.calls("made create")
			s.set("blue", "spec", "color")
			s.calls("changed update")
		}},
		"a predicate is asked about the object as it is": {gold, func(s *stage) {
			s.begin()
			s.size(2)
			s.calls("sync create")
			s.size(3)
			s.calls("sync update")
			s.size(1)
			s.calls()
		}},
	})
}

func TestResync(t *testing.T) {
	scenarios(t, map[string]scenario{
		"each object is looked at again once a period": {
			func(foo *dsl.Resource, j *journal) {
				foo.Resync = time.Hour
				foo.OnResync("again", j.note("again"))
				level(foo, j)
			},
			func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.calls("again resync", "sync resync")
				for range 10 {
					s.Advance(time.Hour)
				}
				if n := len(s.journal.take()); n < 20 || n > 24 {
					s.t.Errorf("%d calls of two handlers in ten hours, want 20 to 24: jitter is a tenth at most", n)
				}
				s.writes()
			},
		},
	})
}

// stop stops the operator.
func stop(s *stage) {
	s.t.Helper()
	if err := s.p.Stop(); err != nil {
		s.t.Error(err)
	}
}
