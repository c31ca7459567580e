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

// The Foo whose two fields name one child, and the one whose fields name two.
const (
	sharing = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: shared}}`
	apart   = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: other}}`
)

// sharedBy is a ConfigMap in YAML that has the name in a field of the spec, and a text.
func sharedBy(field, text string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.spec.` + field + `}"}, data: {from: ` + text + `}}`
}

// making is a handler that makes the ConfigMap shared, with a text, where a field of the spec says so.
func making(field, text string) dsl.Func {
	return func(c ctx, r *dsl.Request) error {
		if name, _ := dsl.MustParsePath("spec." + field).In(r.Object.Object); name != "shared" {
			return nil
		}
		_, err := r.Children.Apply(c, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared"}, "data": map[string]any{"from": text},
		})
		return err
	}
}

// rivalry is two handlers, in YAML or in Go, and how both come to want the ConfigMap shared.
type rivalry struct {
	resource string
	operator func(foo *dsl.Resource, j *journal)
	play     func(s *stage)
}

func (r rivalry) perform(t *testing.T, play func(s *stage)) {
	t.Helper()
	if r.operator != nil {
		perform(t, scenario{r.operator, play})
		return
	}
	written(t, r.resource, play)
}

// from is what the ConfigMap of a name says that it is from.
func (s *stage) from(name string) any {
	s.t.Helper()
	return value(s.Get(configMaps, "default", name), "data.from")
}

// quarrels counts the writes to ConfigMaps in twenty minutes, of which there are to be none.
func (s *stage) quarrels() {
	s.t.Helper()
	s.Forget()
	s.Advance(20 * time.Minute)
	n := 0
	for _, w := range s.Writes() {
		if strings.Contains(w.String(), "configmaps") {
			n++
		}
	}
	if n > 0 {
		s.t.Errorf("in twenty minutes the child is written %d times", n)
	}
}

// TestRivalsAreTold holds that the second one of two handlers that keep one child otherwise is told, however
// they come to it, and leaves it as the first one has made it.
func TestRivalsAreTold(t *testing.T) {
	long := func(options, field, text string) string {
		return `{` + options + `, template: ` + sharedBy(field, text) + `}`
	}
	both := func(first, second string) string {
		return `{resource: foos.v1.example.com, handlers: [{id: first, ` + first + `}, {id: second, ` + second + `}]}`
	}
	settle := func(text string) func(s *stage) {
		return func(s *stage) {
			s.Launch()
			s.Create(text)
			s.Advance(time.Minute)
		}
	}
	later := func(text string) func(s *stage) {
		return func(s *stage) {
			settle(text)(s)
			s.set("shared", "spec", "two")
		}
	}
	restarted := func(s *stage) {
		settle(sharing)(s)
		s.Process.Restart()
	}
	labelled := both(`apply: {a: `+long("ownership: labelled", "one", "one")+`}`, `apply: {b: `+long("ownership: labelled", "two", "two")+`}`)
	for name, one := range map[string]rivalry{
		"a name that becomes the same later": {
			resource: both(`apply: {a: `+sharedBy("one", "one")+`}`, `apply: {b: `+sharedBy("two", "two")+`}`), play: later(apart),
		},
		"a child that is included later": {
			resource: both(`apply: {a: `+sharedBy("one", "one")+`}`, `apply: {b: `+long(`includeWhen: "has(self.spec.two)"`, "two", "two")+`}`),
			play:     later(strings.Replace(apart, ", two: other", "", 1)),
		},
		"a filter that holds later": {
			resource: both(`when: self.spec.size > 0, apply: {a: `+sharedBy("one", "one")+`}`, `when: self.spec.two == 'shared', apply: {b: `+sharedBy("one", "two")+`}`),
			play:     later(apart),
		},
		"handlers of create, and a restart": {
			resource: both(`causes: [create], apply: {a: `+sharedBy("one", "one")+`}`, `causes: [create], apply: {b: `+sharedBy("two", "two")+`}`),
			play:     restarted,
		},
		"handlers that look at one field each": {operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", making("one", "one"), dsl.Field("spec.one"))
			foo.OnReconcile("second", making("two", "two"), dsl.Field("spec.two"))
		}, play: later(apart)},
		"handlers of create and of children, and a restart": {operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "first", making("one", "one"))
			foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "second", making("two", "two"))
		}, play: restarted},
		"a first one that goes on with its second step": {operator: func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", dsl.Steps(making("one", "one"), j.Note("flaky", fails(errAgain), nil)))
			foo.OnReconcile("second", making("two", "two"))
		}, play: settle(sharing)},
		"a first one that waits in its second step when the other comes": {operator: func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", dsl.Steps(making("one", "one"), j.Note("slow", fails(dsl.Waiting("rain", time.Hour)))), dsl.Field("spec.one"))
			foo.OnReconcile("second", making("two", "two"), dsl.Field("spec.two"))
		}, play: later(apart)},
		"a first one that fails at first": {operator: func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", j.Note("first", fails(errAgain), fails(errAgain), making("one", "one")))
			foo.OnReconcile("second", making("two", "two"))
		}, play: settle(sharing)},
		"two steps of one handler": {
			resource: `{resource: foos.v1.example.com, handlers: [{id: both, steps: [{apply: {a: ` + sharedBy("one", "one") + `}}, {apply: {b: ` + sharedBy("two", "two") + `}}]}]}`,
			play:     settle(sharing),
		},
		"children without an owner": {
			resource: both(`apply: {a: `+long("ownership: none", "one", "one")+`}`, `apply: {b: `+long("ownership: none", "two", "two")+`}`), play: settle(sharing),
		},
		"a child without an owner, later": {
			resource: both(`apply: {a: `+long("ownership: none", "one", "one")+`}`, `apply: {b: `+long("ownership: none", "two", "two")+`}`), play: later(apart),
		},
		"children with a label":            {resource: labelled, play: settle(sharing)},
		"a child with a label, later":      {resource: labelled, play: later(apart)},
		"children with a label, a restart": {resource: labelled, play: restarted},
		"children of a roll-out": {
			resource: both(`apply: {a: `+long(`forEach: "${['a']}", rollout: {maxUnavailable: 1}`, "one", "one")+`}`,
				`apply: {b: `+long(`forEach: "${['a']}", rollout: {maxUnavailable: 1}`, "two", "two")+`}`), play: settle(sharing),
		},
	} {
		for _, resync := range []string{"", "resync: 1m, "} {
			if one.operator != nil && resync != "" {
				continue
			}
			one.resource = strings.Replace(one.resource, "handlers:", resync+"handlers:", 1)
			t.Run(name+" "+resync, func(t *testing.T) {
				one.perform(t, func(s *stage) {
					one.play(s)
					s.Advance(5 * time.Minute)
					s.quarrels()
					if got := s.from("shared"); got != "one" {
						s.t.Errorf("the child is from %v, want that of the first one", got)
					}
					told := false
					for _, e := range s.Events() {
						told = told || e.Type == "Warning" && strings.Contains(e.Note, "shared")
					}
					if !told {
						s.t.Errorf("no Event tells of it: %v", s.Events())
					}
				})
			})
		}
	}
}

// TestHandlersThatTakeTurns holds that handlers which make one child at different times, or after one another,
// are no rivals: nobody is told of anything, and the child is as the one wants it whose turn it is.
func TestHandlersThatTakeTurns(t *testing.T) {
	updates := []dsl.Cause{dsl.Update}
	begins := func(s *stage) {
		s.Launch()
		s.Create(sharing)
		s.Advance(time.Minute)
	}
	for name, one := range map[string]struct {
		rivalry
		want any
	}{
		"one of create and one of update": {rivalry{operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnCreate("first", making("one", "one"))
			foo.OnUpdate("second", making("two", "two"))
		}, play: func(s *stage) {
			begins(s)
			s.size(2)
		}}, "two"},
		"one of create and resume, and one of update, and a restart": {rivalry{operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Resume}, "first", making("one", "one"))
			foo.OnUpdate("second", making("two", "two"))
		}, play: func(s *stage) {
			begins(s)
			s.Process.Restart()
			s.size(2)
		}}, "two"},
		"one for each of two fields": {rivalry{operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.On(updates, "first", making("one", "one"), dsl.Field("spec.size"))
			foo.On(updates, "second", making("two", "two"), dsl.Field("spec.color"))
		}, play: func(s *stage) {
			begins(s)
			s.size(2)
			s.Advance(time.Minute)
			s.set("blue", "spec", "color")
		}}, "two"},
		"one of life and one of the deletion": {rivalry{operator: func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", making("one", "one"))
			foo.OnDelete("second", making("two", "two"))
			foo.OnDelete("hold", j.Note("hold", fails(dsl.Waiting("rain", 0))))
		}, play: func(s *stage) {
			begins(s)
			s.remove()
		}}, "two"},
		"filters of which one holds": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: first, when: self.spec.size <= 1, apply: {a: ` + sharedBy("one", "one") + `}},
			{id: second, when: self.spec.size > 1, apply: {b: ` + sharedBy("two", "two") + `}}]}`, play: func(s *stage) {
			begins(s)
			s.size(2)
		}}, "two"},
		"one that only makes what is missing": {rivalry{operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", func(c ctx, r *dsl.Request) error {
				if o, err := r.Children.Get(configMaps, "shared"); err != nil || o != nil {
					return err
				}
				return making("one", "one")(c, r)
			}, dsl.Field("spec.one"))
			foo.On(updates, "second", making("two", "two"), dsl.Field("spec.two", "spec.size"))
		}, play: func(s *stage) {
			begins(s)
			s.size(2)
		}}, "two"},
		"one that has given it up, in Go": {rivalry{operator: func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("first", making("one", "one"), dsl.Field("spec.one"))
			foo.OnReconcile("second", making("two", "two"), dsl.Field("spec.two"))
		}, play: func(s *stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.set("none", "spec", "one")
			s.Advance(time.Minute)
			s.set("shared", "spec", "two")
		}}, "two"},
		"one that has given up what has no owner": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: first, apply: {a: {ownership: none, template: ` + sharedBy("one", "one") + `}}},
			{id: second, apply: {b: {ownership: none, template: ` + sharedBy("two", "two") + `}}}]}`, play: func(s *stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.set("none", "spec", "one")
			s.Advance(time.Minute)
			s.Process.Restart()
			s.set("shared", "spec", "two")
		}}, "two"},
		"one that retains it": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: first, apply: {a: {onDelete: retain, template: ` + sharedBy("one", "one") + `}}},
			{id: second, apply: {b: {onDelete: retain, template: ` + sharedBy("two", "two") + `}}}]}`, play: func(s *stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.set("none", "spec", "one")
			s.Advance(time.Minute)
			s.set("shared", "spec", "two")
		}}, "two"},
		"steps of which the first one has given it up": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [{id: both, steps: [
			{apply: {a: {onDelete: retain, template: ` + sharedBy("one", "one") + `}}}, {apply: {b: {onDelete: retain, template: ` + sharedBy("two", "two") + `}}}]}]}`, play: func(s *stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.swap("none", "shared")
		}}, "two"},
		"one that is called otherwise in the next version": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: before, apply: {a: ` + sharedBy("one", "one") + `}}]}`, play: func(s *stage) {
			begins(s)
			if err := s.Process.Stop(); err != nil {
				s.t.Fatal(err)
			}
			op, err := parse(`{resource: foos.v1.example.com, handlers: [{id: first, log: {message: hi}}, {id: second, apply: {b: ` + sharedBy("two", "two") + `}}]}`)
			if err != nil {
				s.t.Fatal(err)
			}
			s.Operator = op
			s.Launch()
		}}, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			one.perform(t, func(s *stage) {
				one.play(s)
				s.Advance(3 * time.Second) // the first one may have to be asked
				if got := s.from("shared"); got != one.want {
					s.t.Errorf("the child is from %v, want %v", got, one.want)
				}
				s.quarrels()
				if got := s.from("shared"); got != one.want {
					s.t.Errorf("later the child is from %v, want %v", got, one.want)
				}
				s.unwarned()
			})
		})
	}
}

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
