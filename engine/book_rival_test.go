// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

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
