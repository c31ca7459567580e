// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

func TestEachHandlerRunsForItsCauses(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a new object is a create": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("made create")
		}},
		"an object that was there before the first start is a create": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			s.Launch()
			s.Called("made create")
		}},
		"a changed field is an update for the handlers that see it": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("blue", "spec", "color")
			s.Called("changed update")
			s.Resize(2)
			s.Called("changed update", "sized update")
		}},
		"a field that goes and one that comes is a change of it": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "spec", "size")
			})
			s.Called("changed update", "sized update")
			s.Resize(1)
			s.Called("changed update", "sized update")
		}},
		"a label or an annotation is part of the essence": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("x", "metadata", "labels", "tier")
			s.Called("changed update")
			s.Set("x", "metadata", "annotations", "note")
			s.Called("changed update")
		}},
		"status, owners and bookkeeping of others are no change": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("x", "status", "phase")
			s.Set("x", "metadata", "annotations", "kopf.zalando.org/last-handled-configuration")
			s.Set("x", "metadata", "annotations", "other.handwerk.dev/state")
			s.Set([]any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}}, "metadata", "ownerReferences")
			s.Called()
		}},
		"a deleted object is a delete and nothing else": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("left delete")
		}},
		"after a restart an object that is the same is a resume": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Called("back resume")
		}},
		"what changed while the operator was away is an update, what came a create, what goes a delete": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			scene.Stop(s)
			s.Resize(2)
			s.Process.Restart()
			s.Called("changed update", "sized update", "back resume")
			scene.Stop(s)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.Remove()
			s.Process.Restart()
			s.Settle()
			s.CalledInAnyOrder("left delete", "made create")
		}},
	})
}

func TestALevelTriggeredHandlerRunsForEachCause(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a new object is a create, a changed one an update": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Forget()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.Called("sync create")
			s.Resize(2)
			s.Called("sync update")
		}},
		"an object that was there at the start is a resume, for nothing is stored": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			s.Launch()
			s.Called("sync resume")
		}},
		"an object that was there at the start is a create where others store what was handled": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				scene.Syncs(foo, j)
				foo.OnCreate("made", j.Note("made"))
			},
			Play: func(s *scene.Stage) {
				s.Create(scene.Web)
				s.Launch()
				s.Called("sync create", "made create")
				s.Process.Restart()
				s.Called("sync resume")
			},
		},
		"status and deletion are no cause": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				scene.Syncs(foo, j)
				foo.OnDelete("left", j.Note("left"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Set("x", "status", "phase")
				s.Called()
				s.Remove()
				s.Called("left delete")
			},
		},
		"with a field it runs only where the field is, and when it changes": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("sync", j.Note("sync"), dsl.Field("spec.size"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {color: red}}`)
				s.Called()
				s.Resize(1)
				s.Called("sync update")
				s.Set("blue", "spec", "color")
				s.Called()
				s.Process.Restart()
				s.Called("sync resume")
			},
		},
	})
}

func TestANewHandlerDoesNotCreateAHandledObject(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"get no create for what was handled before, but everything else": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Begin()
				scene.Stop(s)
				s.Operator = dsl.New("op")
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					scene.EachCause(foo, &s.Journal)
					foo.OnCreate("newer", s.Note("newer"))
					scene.Syncs(foo, &s.Journal)
				})
				s.Launch()
				s.Called("back resume", "sync resume")
				s.Resize(2)
				s.Called("changed update", "sized update", "sync update")
			},
		},
	})
}

func TestAHandlerRunsForObjectsThatItsFiltersMatch(t *testing.T) {
	gold := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnCreate("made", j.Note("made"), dsl.Label("tier", "gold"))
		foo.OnUpdate("changed", j.Note("changed"), dsl.Label("tier", "gold"))
		foo.OnReconcile("sync", j.Note("sync"), dsl.When(func(r *dsl.Subject) (bool, error) {
			size, _, err := unstructured.NestedInt64(r.Object.Object, "spec", "size")
			return size > 1, err
		}))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object that no handler sees is left without a mark": {Operator: gold, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called()
			s.Wrote()
		}},
		"an object that is seen later is new then": {Operator: gold, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("gold", "metadata", "labels", "tier")
			s.Called("made create")
			s.Set("blue", "spec", "color")
			s.Called("changed update")
		}},
		"a predicate is asked about the object as it is": {Operator: gold, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("sync create")
			s.Resize(3)
			s.Called("sync update")
			s.Resize(1)
			s.Called()
		}},
	})
}

func TestAResyncRunsHandlersWithoutAChange(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"each object is looked at again once a period": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Resync = time.Hour
				foo.OnResync("again", j.Note("again"))
				scene.Syncs(foo, j)
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Called("again resync", "sync resync")
				for range 10 {
					s.Advance(time.Hour)
				}
				if n := len(s.Take()); n < 20 || n > 24 {
					s.T.Errorf("%d calls of two handlers in ten hours, want 20 to 24: jitter is a tenth at most", n)
				}
				s.Wrote()
			},
		},
	})
}
