// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// swapNames sets the names of both children in one change.
func swapNames(s *scene.Stage, one, two string) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		spec := o.Object["spec"].(map[string]any)
		spec["one"], spec["two"] = one, two
	})
}

// TestAHandlerThatGivesAChildUpLeavesItToTheOther holds that who gives a child up leaves it to the other one, and that names
// may be swapped.
func TestAHandlerThatGivesAChildUpLeavesItToTheOther(t *testing.T) {
	resource := twoHandlers("${self.spec.one}", "${self.spec.two}")
	t.Run("names are swapped", func(t *testing.T) {
		scene.PlayYAML(t, resource, func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(5 * time.Minute)
			swapNames(s, "other", "shared")
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if a, b := sourceOf(s, "other"), sourceOf(s, "shared"); a != "one" || b != "two" {
				s.T.Errorf("other is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("names are swapped while no process runs", func(t *testing.T) {
		scene.PlayYAML(t, resource, func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(5 * time.Minute)
			s.Process.Kill()
			swapNames(s, "other", "shared")
			s.Process.Restart()
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if a, b := sourceOf(s, "other"), sourceOf(s, "shared"); a != "one" || b != "two" {
				s.T.Errorf("other is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("the first one goes elsewhere", func(t *testing.T) {
		scene.PlayYAML(t, resource, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(10 * time.Minute)
			s.Set("elsewhere", "spec", "one")
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if a, b := sourceOf(s, "elsewhere"), sourceOf(s, "shared"); a != "one" || b != "two" {
				s.T.Errorf("elsewhere is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("the first step gives it up", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: both, steps: [
			{apply: {a: {onDelete: retain, template: `+sharedBy("one", "one")+`}}}, {apply: {b: {onDelete: retain, template: `+sharedBy("two", "two")+`}}}]}]}`, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(10 * time.Minute)
			if got := sourceOf(s, "shared"); got != "one" {
				s.T.Errorf("shared is from %v, want the first step's", got)
			}
			s.Set("elsewhere", "spec", "one")
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if a, b := sourceOf(s, "elsewhere"), sourceOf(s, "shared"); a != "one" || b != "two" {
				s.T.Errorf("elsewhere is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("the first one ends in a later step, and the other one comes in that pass", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", dsl.Steps(scene.MakesShared("one", "one"), j.Note("slow", scene.Fails(dsl.Waiting("rain", time.Minute)), nil)))
			foo.OnReconcile("second", j.Note("second", scene.Fails(dsl.Temporary(scene.ErrAgain, time.Minute)), scene.MakesShared("two", "two")))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(10 * time.Minute)
			var writes []string
			for _, w := range s.Writes() {
				if w.Resource == "configmaps" {
					writes = append(writes, w.String())
				}
			}
			if len(writes) != 1 || sourceOf(s, "shared") != "one" {
				s.T.Errorf("the child is from %v, and there are the writes %v", sourceOf(s, "shared"), writes)
			}
			s.WantWarning("second")
		}})
	})
	t.Run("the first one fails before it comes to the child", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", func(c context.Context, r *dsl.Request) error {
				if scene.ValueAt(r.Object, "spec.color") == "blue" {
					return scene.ErrAgain
				}
				return scene.MakesShared("one", "one")(c, r)
			})
			foo.OnReconcile("second", scene.MakesShared("two", "two"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(10 * time.Minute)
			s.Set("blue", "spec", "color")
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if got := sourceOf(s, "shared"); got != "one" {
				s.T.Errorf("shared is from %v, want the first one's, who has not given it up", got)
			}
		}})
	})
	t.Run("the first one made it for once, and does not come back", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("first", scene.MakesShared("one", "one"))
			foo.OnReconcile("second", scene.MakesShared("two", "two"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if got := sourceOf(s, "shared"); got != "one" {
				s.T.Errorf("shared is from %v, want the first one's as long as the object is as it was", got)
			}
			s.Resize(2)
			s.Advance(time.Minute)
			if got := sourceOf(s, "shared"); got != "two" {
				s.T.Errorf("shared is from %v, want the second one's", got)
			}
		}})
	})
	t.Run("the first one waits for something of its own", func(t *testing.T) {
		waiting := strings.Replace(resource, `apply: {settings: `, `apply: {settings: {readyWhen: "has(child.data.ready)", template: `, 1)
		scene.PlayYAML(t, strings.Replace(waiting, "from: one}}", "from: one}}}", 1), func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(10 * time.Minute)
			wantNoMoreWrites(s)
			if got := sourceOf(s, "shared"); got != "one" {
				s.T.Errorf("shared is from %v, want the first one's", got)
			}
			s.Set("elsewhere", "spec", "one")
			s.Advance(10 * time.Minute)
			s.Update(scene.ConfigMaps, "default", "elsewhere", func(o *unstructured.Unstructured) {
				o.Object["data"].(map[string]any)["ready"] = "yes"
			})
			s.Advance(20 * time.Minute)
			if got := sourceOf(s, "shared"); got != "two" {
				s.T.Errorf("shared is from %v, want the second one's, for the first one has no use for it any more", got)
			}
		})
	})
}

// TestAChildOfADeletionHasOneHandler holds that a delete handler does not take what another one has made for
// its own: the object would go without the second backup.
func TestAChildOfADeletionHasOneHandler(t *testing.T) {
	job := func(field, n string) string {
		return `{readyWhen: child.status.succeeded > 0, template: {apiVersion: batch/v1, kind: Job, metadata: {name: "${self.spec.` + field + `}"}, spec: {parallelism: ` + n + `}}}`
	}
	resource := `{resource: foos.v1.example.com, handlers: [{id: first, causes: [delete], apply: {a: ` + job("one", "1") + `}},
		{id: second, causes: [delete], apply: {b: ` + job("two", "2") + `}}]}`
	for name, restart := range map[string]bool{"in one process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, resource, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.WebThatShares)
				s.Forget()
				s.Remove()
				s.Settle()
				s.Update(scene.Jobs, "default", "shared", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"succeeded": int64(1)} })
				s.Advance(time.Hour)
				if restart {
					s.Process.Restart()
					s.Advance(time.Hour)
				}
				if s.Web() == nil || s.Get(scene.Jobs, "default", "shared").GetAnnotations()[scene.ChildAnnotation] != "first/a" {
					s.T.Fatalf("the object is gone: %v; the Job is %v", s.Web() == nil, s.Get(scene.Jobs, "default", "shared"))
				}
				s.Delete(scene.Jobs, "default", "shared")
				s.Advance(time.Hour)
				if got := s.Get(scene.Jobs, "default", "shared").GetAnnotations()[scene.ChildAnnotation]; got != "second/b" {
					s.T.Errorf("a person has taken the first one's Job away, and the next one is %q", got)
				}
			})
		})
	}
}

// TestTheMakerOfAChildIsNotedWithoutAWrite is about children without names: they say who made them, and that is no reason to
// write.
func TestTheMakerOfAChildIsNotedWithoutAWrite(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("first", j.Note("first", scene.MakesShared("one", "one")))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.WebThatShares)
		s.Forget()
		if got := s.Get(scene.ConfigMaps, "default", "shared").GetAnnotations()[scene.ChildAnnotation]; got != "first/" {
			s.T.Errorf("the child says that it is %q", got)
		}
		s.Update(scene.ConfigMaps, "default", "shared", func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", scene.ChildAnnotation) // it is lost
		})
		s.Called("first child")
		s.Process.Restart()
		s.Called("first resume")
		s.Wrote()
		s.Update(scene.ConfigMaps, "default", "shared", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"from": "x"} })
		s.Wrote("patch configmaps default/shared")
		if got := s.Get(scene.ConfigMaps, "default", "shared").GetAnnotations()[scene.ChildAnnotation]; got != "first/" {
			s.T.Errorf("the child says that it is %q once it was written", got)
		}
	}})
}
