// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// swap sets the names of both children in one change.
func (s *stage) swap(one, two string) {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		spec := o.Object["spec"].(map[string]any)
		spec["one"], spec["two"] = one, two
	})
}

// TestRivalsPart holds that who gives a child up leaves it to the other one, and that names may be swapped.
func TestRivalsPart(t *testing.T) {
	resource := same("${self.spec.one}", "${self.spec.two}")
	t.Run("names are swapped", func(t *testing.T) {
		written(t, resource, func(s *stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(5 * time.Minute)
			s.swap("other", "shared")
			s.Advance(10 * time.Minute)
			s.quarrels()
			if a, b := s.from("other"), s.from("shared"); a != "one" || b != "two" {
				s.t.Errorf("other is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("names are swapped while no process runs", func(t *testing.T) {
		written(t, resource, func(s *stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(5 * time.Minute)
			s.Process.Kill()
			s.swap("other", "shared")
			s.Process.Restart()
			s.Advance(10 * time.Minute)
			s.quarrels()
			if a, b := s.from("other"), s.from("shared"); a != "one" || b != "two" {
				s.t.Errorf("other is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("the first one goes elsewhere", func(t *testing.T) {
		written(t, resource, func(s *stage) {
			s.Launch()
			s.Create(sharing)
			s.Advance(10 * time.Minute)
			s.set("elsewhere", "spec", "one")
			s.Advance(10 * time.Minute)
			s.quarrels()
			if a, b := s.from("elsewhere"), s.from("shared"); a != "one" || b != "two" {
				s.t.Errorf("elsewhere is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("the first step gives it up", func(t *testing.T) {
		written(t, `{resource: foos.v1.example.com, handlers: [{id: both, steps: [
			{apply: {a: {onDelete: retain, template: `+sharedBy("one", "one")+`}}}, {apply: {b: {onDelete: retain, template: `+sharedBy("two", "two")+`}}}]}]}`, func(s *stage) {
			s.Launch()
			s.Create(sharing)
			s.Advance(10 * time.Minute)
			if got := s.from("shared"); got != "one" {
				s.t.Errorf("shared is from %v, want the first step's", got)
			}
			s.set("elsewhere", "spec", "one")
			s.Advance(10 * time.Minute)
			s.quarrels()
			if a, b := s.from("elsewhere"), s.from("shared"); a != "one" || b != "two" {
				s.t.Errorf("elsewhere is from %v, shared from %v", a, b)
			}
		})
	})
	t.Run("the first one ends in a later step, and the other one comes in that pass", func(t *testing.T) {
		perform(t, scenario{func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", dsl.Steps(making("one", "one"), j.Note("slow", fails(dsl.Waiting("rain", time.Minute)), nil)))
			foo.OnReconcile("second", j.Note("second", fails(dsl.Temporary(errAgain, time.Minute)), making("two", "two")))
		}, func(s *stage) {
			s.Launch()
			s.Create(sharing)
			s.Advance(10 * time.Minute)
			var writes []string
			for _, w := range s.Writes() {
				if w.Resource == "configmaps" {
					writes = append(writes, w.String())
				}
			}
			if len(writes) != 1 || s.from("shared") != "one" {
				s.t.Errorf("the child is from %v, and there are the writes %v", s.from("shared"), writes)
			}
			s.warned("second")
		}})
	})
	t.Run("the first one fails before it comes to the child", func(t *testing.T) {
		perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", func(c ctx, r *dsl.Request) error {
				if value(r.Object, "spec.color") == "blue" {
					return errAgain
				}
				return making("one", "one")(c, r)
			})
			foo.OnReconcile("second", making("two", "two"))
		}, func(s *stage) {
			s.Launch()
			s.Create(sharing)
			s.Advance(10 * time.Minute)
			s.set("blue", "spec", "color")
			s.Advance(10 * time.Minute)
			s.quarrels()
			if got := s.from("shared"); got != "one" {
				s.t.Errorf("shared is from %v, want the first one's, who has not given it up", got)
			}
		}})
	})
	t.Run("the first one made it for once, and does not come back", func(t *testing.T) {
		perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnCreate("first", making("one", "one"))
			foo.OnReconcile("second", making("two", "two"))
		}, func(s *stage) {
			s.Launch()
			s.Create(sharing)
			s.Advance(10 * time.Minute)
			s.quarrels()
			if got := s.from("shared"); got != "one" {
				s.t.Errorf("shared is from %v, want the first one's as long as the object is as it was", got)
			}
			s.size(2)
			s.Advance(time.Minute)
			if got := s.from("shared"); got != "two" {
				s.t.Errorf("shared is from %v, want the second one's", got)
			}
		}})
	})
	t.Run("the first one waits for something of its own", func(t *testing.T) {
		waiting := strings.Replace(resource, `apply: {settings: `, `apply: {settings: {readyWhen: "has(child.data.ready)", template: `, 1)
		written(t, strings.Replace(waiting, "from: one}}", "from: one}}}", 1), func(s *stage) {
			s.Launch()
			s.Create(sharing)
			s.Advance(10 * time.Minute)
			s.quarrels()
			if got := s.from("shared"); got != "one" {
				s.t.Errorf("shared is from %v, want the first one's", got)
			}
			s.set("elsewhere", "spec", "one")
			s.Advance(10 * time.Minute)
			s.Update(configMaps, "default", "elsewhere", func(o *unstructured.Unstructured) {
				o.Object["data"].(map[string]any)["ready"] = "yes"
			})
			s.Advance(20 * time.Minute)
			if got := s.from("shared"); got != "two" {
				s.t.Errorf("shared is from %v, want the second one's, for the first one has no use for it any more", got)
			}
		})
	})
}

// TestWhatADeletionMakesIsOneHandlers holds that a delete handler does not take what another one has made for
// its own: the object would go without the second backup.
func TestWhatADeletionMakesIsOneHandlers(t *testing.T) {
	job := func(field, n string) string {
		return `{readyWhen: child.status.succeeded > 0, template: {apiVersion: batch/v1, kind: Job, metadata: {name: "${self.spec.` + field + `}"}, spec: {parallelism: ` + n + `}}}`
	}
	resource := `{resource: foos.v1.example.com, handlers: [{id: first, causes: [delete], apply: {a: ` + job("one", "1") + `}},
		{id: second, causes: [delete], apply: {b: ` + job("two", "2") + `}}]}`
	for name, restart := range map[string]bool{"in one process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			written(t, resource, func(s *stage) {
				s.Launch()
				s.Create(sharing)
				s.Forget()
				s.remove()
				s.Settle()
				s.Update(jobs, "default", "shared", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"succeeded": int64(1)} })
				s.Advance(time.Hour)
				if restart {
					s.Process.Restart()
					s.Advance(time.Hour)
				}
				if s.web() == nil || s.Get(jobs, "default", "shared").GetAnnotations()[childAnnotation] != "first/a" {
					s.t.Fatalf("the object is gone: %v; the Job is %v", s.web() == nil, s.Get(jobs, "default", "shared"))
				}
				s.Delete(jobs, "default", "shared")
				s.Advance(time.Hour)
				if got := s.Get(jobs, "default", "shared").GetAnnotations()[childAnnotation]; got != "second/b" {
					s.t.Errorf("a person has taken the first one's Job away, and the next one is %q", got)
				}
			})
		})
	}
}

// TestTheMakersNote is about children without names: they say who made them, and that is no reason to write.
func TestTheMakersNote(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.Owns(configMaps)
		foo.OnReconcile("first", j.Note("first", making("one", "one")))
	}, func(s *stage) {
		s.Launch()
		s.Create(sharing)
		s.Forget()
		if got := s.Get(configMaps, "default", "shared").GetAnnotations()[childAnnotation]; got != "first/" {
			s.t.Errorf("the child says that it is %q", got)
		}
		s.Update(configMaps, "default", "shared", func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", childAnnotation) // as before there were notes
		})
		s.Called("first child")
		s.Process.Restart()
		s.Called("first resume")
		s.Wrote()
		s.Update(configMaps, "default", "shared", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"from": "x"} })
		s.Wrote("patch configmaps default/shared")
		if got := s.Get(configMaps, "default", "shared").GetAnnotations()[childAnnotation]; got != "first/" {
			s.t.Errorf("the child says that it is %q once it was written", got)
		}
	}})
}
