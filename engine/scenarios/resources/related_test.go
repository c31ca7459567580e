// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// byMatch selects the ConfigMaps of any namespace whose data has the object's name.
func byMatch(r *dsl.Subject) (dsl.Selection, error) {
	name := r.Object.GetName()
	return dsl.Selection{Match: func(o *unstructured.Unstructured) (bool, error) {
		owner, found, _ := unstructured.NestedString(o.Object, "data", "for")
		if !found {
			return false, nil
		}
		return owner == name, nil
	}}, nil
}

// settingsMap returns a ConfigMap; the name may have a namespace before it.
func settingsMap(name, app, owner, value string) string {
	namespace, rest, both := strings.Cut(name, "/")
	if !both {
		namespace, rest = "default", name
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s, labels: {app: "%s"}}, data: {for: "%s", v: "%s"}}`,
		namespace, rest, app, owner, value)
}

// setData sets the value of a ConfigMap's data.
func setData(s *scene.Stage, name, key, value string) {
	s.T.Helper()
	namespace, rest, both := strings.Cut(name, "/")
	if !both {
		namespace, rest = "default", name
	}
	s.Update(scene.ConfigMaps, namespace, rest, func(o *unstructured.Unstructured) {
		if key == "app" {
			o.SetLabels(map[string]string{"app": value})
			return
		}
		_ = unstructured.SetNestedField(o.Object, value, "data", key)
	})
}

func TestHandlersRunForRelatedObjects(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"by name: those that name the object are woken, and no others": {
			Operator: scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Launch()
				s.Create(scene.FooWithRef("one", "a"))
				s.Create(scene.FooWithRef("two", "b"))
				s.CalledInAnyOrder("one create: default/a=1", "two create:")
				setData(s, "a", "v", "2")
				s.Called("one related: default/a=2")
				s.Create(settingsMap("b", "", "", "1"))
				s.Called("two related: default/b=1")
				s.Create(settingsMap("other/b", "", "", "9"))
				s.Create(settingsMap("c", "", "", "9"))
				s.Called()
				s.Delete(scene.ConfigMaps, "default", "b")
				s.Called("two related:")
				s.Wrote()
			},
		},
		"what an object asks for may change": {
			Operator: scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Create(settingsMap("b", "", "", "1"))
				s.Launch()
				s.Create(scene.FooWithRef("web", "a"))
				s.Called("web create: default/a=1")
				s.Set("b", "spec", "ref")
				s.Called("web update: default/b=1")
				setData(s, "a", "v", "2")
				s.Called()
				setData(s, "b", "v", "2")
				s.Called("web related: default/b=2")
				s.Remove()
				s.Settle()
				setData(s, "b", "v", "3")
				s.Called()
			},
		},
		"a handler for related changes alone sees that its object asks for another": {
			Operator: scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.RelatedChange), Play: func(s *scene.Stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Launch()
				s.Create(scene.FooWithRef("web", "x"))
				s.Set("y", "spec", "ref")
				s.Called()
				s.Set("a", "spec", "ref")
				s.Called("web related: default/a=1")
			},
		},
		"by labels: those whose selector the object fulfils or did fulfil": {
			Operator: scene.NotesRelated(dsl.Relation{Select: scene.RelatedByLabel}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.FooWithRef("one", "x"))
				s.Create(scene.FooWithRef("two", "x"))
				s.Forget()
				s.Create(settingsMap("b", "one", "", "1"))
				s.Called("one related: default/b=1")
				s.Create(settingsMap("a", "one", "", "1"))
				s.Called("one related: default/a=1 default/b=1")
				setData(s, "a", "app", "two")
				s.CalledInAnyOrder("one related: default/b=1", "two related: default/a=1")
				setData(s, "a", "app", "none")
				s.Called("two related:")
				s.Create(settingsMap("other/a", "one", "", "1"))
				s.Called()
			},
		},
		"by a condition: those for which it holds or did hold": {
			Operator: scene.NotesRelated(dsl.Relation{Select: byMatch}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.FooWithRef("one", "x"))
				s.Create(scene.FooWithRef("two", "x"))
				s.Forget()
				s.Create(settingsMap("other/a", "", "one", "1"))
				s.Called("one related: other/a=1")
				setData(s, "other/a", "for", "two")
				s.CalledInAnyOrder("one related:", "two related: other/a=1")
				setData(s, "other/a", "for", "other")
				s.Called("two related:")
				setData(s, "other/a", "v", "2")
				s.Delete(scene.ConfigMaps, "other", "a")
				s.Called()
			},
		},
		"without a selection all of them": {
			Operator: scene.NotesRelated(dsl.Relation{}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("web create:")
				s.Create(settingsMap("other/a", "", "", "1"))
				s.Called("web related: other/a=1")
			},
		},
		"what the server does not select is not there": {
			Operator: scene.NotesRelated(dsl.Relation{LabelSelector: "app=x"}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Forget()
				s.Create(settingsMap("a", "y", "", "1"))
				s.Called()
				s.Create(settingsMap("b", "x", "", "1"))
				s.Called("web related: default/b=1")
			},
		},
	})
}

// TestASelectionThatFailsFailsItsHandler holds that the code which selects related objects may fail and panic like a handler.
func TestASelectionThatFailsFailsItsHandler(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a selection that fails fails the handler, which is tried again": {
			Operator: scene.NotesRelated(dsl.Relation{Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{}, scene.ErrAgain }}, dsl.Reconcile),
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(29 * time.Hour)
				s.Called("web create: error", "web create: error")
			},
		},
		"one that panics too": {
			Operator: scene.NotesRelated(dsl.Relation{Select: func(*dsl.Subject) (dsl.Selection, error) { panic("no") }}, dsl.Reconcile),
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("web create: error")
			},
		},
	})
}

// TestNewsOfRelatedObjectsAreNotLost holds that gaps, failed passes and restarts lose none and make none up.
func TestNewsOfRelatedObjectsAreNotLost(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a deletion in a gap of the watch counts": {
			Operator: scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Launch()
				s.Create(scene.FooWithRef("web", "a"))
				s.Forget()
				s.HoldWatches(scene.ConfigMaps)
				s.Delete(scene.ConfigMaps, "default", "a")
				s.ExpireWatches(scene.ConfigMaps)
				s.ReleaseWatches(scene.ConfigMaps)
				s.Advance(time.Minute)
				s.Called("web related:")
			},
		},
		"a change cuts a retry short": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				scene.NotesRelated(dsl.Relation{}, dsl.RelatedChange)(foo, j)
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Hour), scene.Fails(dsl.Waiting("them", time.Hour)), scene.Succeeds))
				foo.OnCreate("made", j.Note("made", scene.Fails(dsl.Waiting("them", time.Hour)), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("vain create", "made create")
				s.Create(settingsMap("a", "", "", "1"))
				s.Called("web related: default/a=1", "vain create 2", "made create")
				setData(s, "a", "v", "2")
				s.Called("web related: default/a=2", "vain create 2")
			},
		},
		"a restart brings no news": {
			Operator: scene.NotesRelated(dsl.Relation{}, dsl.RelatedChange), Play: func(s *scene.Stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Begin()
				s.Process.Restart()
				s.Called()
				setData(s, "a", "v", "2")
				s.Called("web related: default/a=2")
			},
		},
		"news of a pass that failed reach the next": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}})
				foo.OnRelated("see", j.Note("see", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("seen", r.Now.String())
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.FailNext("patch", scene.Foos+"/status", errors.New("connection refused"))
				s.Create(settingsMap("a", "", "", "1"))
				s.Advance(time.Second)
				s.Called("see related", "see related")
			},
		},
	})
}

// TestAnObjectAmongItsRelatedOnesRests holds that an object that is among its related ones is not news to itself, and
// that two that are each other's come to rest.
func TestAnObjectAmongItsRelatedOnesRests(t *testing.T) {
	any := func(*unstructured.Unstructured) (bool, error) { return true, nil }
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Relates(dsl.Relation{
			Name: "foos", Resource: dsl.ResourceName{Resource: "foos", Version: "v1", Group: "example.com"},
			Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{Match: any}, nil },
		})
		foo.OnReconcile("count", func(_ context.Context, r *dsl.Request) error {
			found, err := r.Related.Get("foos")
			j.Add(fmt.Sprint(r.Object.GetName(), " ", r.Cause, " ", len(found)))
			r.Patch.SetStatus("foos", len(found))
			r.Patch.SetStatus("at", r.Now.String())
			if r.Object.GetName() != "web" {
				delete(r.Patch.Status, "at")
			}
			return err
		})
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"alone it writes once": {Operator: operator, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("web create 1")
			s.Wrote("patch foos/status default/web")
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
		}},
		"others are news": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.Create(scene.FooWithRef("other", "x"))
			s.Advance(time.Minute)
			if n := len(s.Writes()); n < 2 || n > 6 {
				s.T.Errorf("%d writes", n)
			}
			s.Forget()
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
		}},
	})
}
