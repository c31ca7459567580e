// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const apart = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: other}}`

// sharedBy is a ConfigMap in YAML that has the name in a field of the spec, and a text.
func sharedBy(field, text string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.spec.` + field + `}"}, data: {from: ` + text + `}}`
}

// rivalry is two handlers, in YAML or in Go, and how both come to want the ConfigMap shared.
type rivalry struct {
	resource string
	operator func(foo *dsl.Resource, j *kit.Journal)
	play     func(s *scene.Stage)
}

func (r rivalry) perform(t *testing.T, play func(s *scene.Stage)) {
	t.Helper()
	if r.operator != nil {
		scene.Play(t, scene.Scenario{Operator: r.operator, Play: play})
		return
	}
	scene.PlayYAML(t, r.resource, play)
}

// sourceOf is what the ConfigMap of a name says that it is from.
func sourceOf(s *scene.Stage, name string) any {
	s.T.Helper()
	return scene.ValueAt(s.Get(scene.ConfigMaps, "default", name), "data.from")
}

// wantNoMoreWrites counts the writes to ConfigMaps in twenty minutes; it wants 0.
func wantNoMoreWrites(s *scene.Stage) {
	s.T.Helper()
	s.Forget()
	s.Advance(20 * time.Minute)
	n := 0
	for _, w := range s.Writes() {
		if strings.Contains(w.String(), "configmaps") {
			n++
		}
	}
	if n > 0 {
		s.T.Errorf("in twenty minutes the child is written %d times", n)
	}
}

// TestTheSecondHandlerOfAChildIsRefused holds that the second one of two handlers that keep one child otherwise is refused, however
// they come to it, and leaves it as the first one has made it.
func TestTheSecondHandlerOfAChildIsRefused(t *testing.T) {
	long := func(options, field, text string) string {
		return `{` + options + `, template: ` + sharedBy(field, text) + `}`
	}
	both := func(first, second string) string {
		return `{resource: foos.v1.example.com, handlers: [{id: first, ` + first + `}, {id: second, ` + second + `}]}`
	}
	settle := func(text string) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Launch()
			s.Create(text)
			s.Advance(time.Minute)
		}
	}
	later := func(text string) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			settle(text)(s)
			s.Set("shared", "spec", "two")
		}
	}
	restarted := func(s *scene.Stage) {
		settle(scene.WebThatShares)(s)
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
		"handlers that look at one field each": {operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", scene.MakesShared("one", "one"), dsl.Field("spec.one"))
			foo.OnReconcile("second", scene.MakesShared("two", "two"), dsl.Field("spec.two"))
		}, play: later(apart)},
		"handlers of create and of children, and a restart": {operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "first", scene.MakesShared("one", "one"))
			foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "second", scene.MakesShared("two", "two"))
		}, play: restarted},
		"a first one that goes on with its second step": {operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", dsl.Steps(scene.MakesShared("one", "one"), j.Note("flaky", scene.Fails(scene.ErrAgain), nil)))
			foo.OnReconcile("second", scene.MakesShared("two", "two"))
		}, play: settle(scene.WebThatShares)},
		"a first one that waits in its second step when the other comes": {operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", dsl.Steps(scene.MakesShared("one", "one"), j.Note("slow", scene.Fails(dsl.Waiting("rain", time.Hour)))), dsl.Field("spec.one"))
			foo.OnReconcile("second", scene.MakesShared("two", "two"), dsl.Field("spec.two"))
		}, play: later(apart)},
		"a first one that fails at first": {operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", j.Note("first", scene.Fails(scene.ErrAgain), scene.Fails(scene.ErrAgain), scene.MakesShared("one", "one")))
			foo.OnReconcile("second", scene.MakesShared("two", "two"))
		}, play: settle(scene.WebThatShares)},
		"two steps of one handler": {
			resource: `{resource: foos.v1.example.com, handlers: [{id: both, steps: [{apply: {a: ` + sharedBy("one", "one") + `}}, {apply: {b: ` + sharedBy("two", "two") + `}}]}]}`,
			play:     settle(scene.WebThatShares),
		},
		"children without an owner": {
			resource: both(`apply: {a: `+long("ownership: none", "one", "one")+`}`, `apply: {b: `+long("ownership: none", "two", "two")+`}`), play: settle(scene.WebThatShares),
		},
		"a child without an owner, later": {
			resource: both(`apply: {a: `+long("ownership: none", "one", "one")+`}`, `apply: {b: `+long("ownership: none", "two", "two")+`}`), play: later(apart),
		},
		"children with a label":            {resource: labelled, play: settle(scene.WebThatShares)},
		"a child with a label, later":      {resource: labelled, play: later(apart)},
		"children with a label, a restart": {resource: labelled, play: restarted},
		"children of a roll-out": {
			resource: both(`apply: {a: `+long(`forEach: "${['a']}", rollout: {maxUnavailable: 1}`, "one", "one")+`}`,
				`apply: {b: `+long(`forEach: "${['a']}", rollout: {maxUnavailable: 1}`, "two", "two")+`}`), play: settle(scene.WebThatShares),
		},
	} {
		for _, resync := range []string{"", "resync: 1m, "} {
			if one.operator != nil && resync != "" {
				continue
			}
			one.resource = strings.Replace(one.resource, "handlers:", resync+"handlers:", 1)
			t.Run(name+" "+resync, func(t *testing.T) {
				one.perform(t, func(s *scene.Stage) {
					one.play(s)
					s.Advance(5 * time.Minute)
					wantNoMoreWrites(s)
					if got := sourceOf(s, "shared"); got != "one" {
						s.T.Errorf("the child is from %v, want that of the first one", got)
					}
					reported := false
					for _, e := range s.Events() {
						reported = reported || e.Type == "Warning" && strings.Contains(e.Note, "shared")
					}
					if !reported {
						s.T.Errorf("no Event reports it: %v", s.Events())
					}
				})
			})
		}
	}
}
