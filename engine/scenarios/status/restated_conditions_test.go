// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestConditionsOfHandlersThatRestAreRestated holds which conditions are restated for a generation for which their
// handlers do not run, whatever it is that these look at.
func TestConditionsOfHandlersThatRestAreRestated(t *testing.T) {
	const sized = `set: {conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}`
	colored := func(color string) func(s *scene.Stage) {
		return func(s *scene.Stage) { s.Set(color, "spec", "color") }
	}
	restarted := func(s *scene.Stage) {
		s.Settle()
		s.Process.Restart()
		s.Settle()
	}
	sizes := func(n int64) func(s *scene.Stage) { return func(s *scene.Stage) { s.Resize(n) } }
	const grows = `{id: begins, causes: [create], set: {conditions: [{type: Sized, status: false}]}},
		{id: grows, causes: [update], field: spec.size, set: {conditions: [{type: Sized, status: true}]}}`
	for name, c := range map[string]struct {
		handlers string
		changes  []func(s *scene.Stage)
		want     string
	}{
		"a level-triggered one with a field":             {`{id: a, field: spec.size, ` + sized + `}`, []func(*scene.Stage){colored("blue")}, "True@2"},
		"one of create and update with a field":          {`{id: a, causes: [create, update], field: spec.size, ` + sized + `}`, []func(*scene.Stage){colored("blue")}, "True@2"},
		"the same after a restart":                       {`{id: a, causes: [create, update], field: spec.size, ` + sized + `}`, []func(*scene.Stage){restarted, colored("blue")}, "True@2"},
		"one whose filter holds":                         {`{id: a, field: spec.size, when: self.spec.color != 'green', ` + sized + `}`, []func(*scene.Stage){colored("blue")}, "True@2"},
		"not one whose filter does not hold any more":    {`{id: a, field: spec.size, when: self.spec.color != 'blue', ` + sized + `}`, []func(*scene.Stage){colored("blue")}, "True@1"},
		"not one that reads more than its field":         {`{id: a, field: spec.size, set: {conditions: [{type: Sized, status: "${self.spec.color == 'red'}"}]}}`, []func(*scene.Stage){colored("blue")}, "True@1"},
		"one that sets more than conditions":             {`{id: a, field: spec.size, set: {labels: {a: b}, conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}}`, []func(*scene.Stage){colored("blue")}, "True@2"},
		"not one of create alone that looks at all":      {`{id: a, causes: [create], ` + sized + `}`, []func(*scene.Stage){colored("blue")}, "True@1"},
		"one of create alone that looks at a field":      {`{id: a, causes: [create], field: spec.size, ` + sized + `}`, []func(*scene.Stage){colored("blue")}, "True@2"},
		"not one of create alone whose field changed":    {`{id: a, causes: [create], field: spec.size, ` + sized + `}`, []func(*scene.Stage){sizes(0)}, "True@1"},
		"not one that has failed":                        {`{id: a, field: spec.size, set: {conditions: [{type: Sized, status: true, reason: "${self.spec.size > 1 ? 'not one word' : 'Fine'}"}]}}`, []func(*scene.Stage){sizes(2), colored("blue")}, "True@1"},
		"not one that has never run":                     {grows, []func(*scene.Stage){colored("blue")}, "False@1"},
		"not one that has never run, after a restart":    {grows, []func(*scene.Stage){restarted, colored("blue")}, "False@1"},
		"one that has run after it had not":              {grows, []func(*scene.Stage){colored("blue"), sizes(2), colored("green")}, "True@4"},
		"one that has run, after a restart":              {grows, []func(*scene.Stage){sizes(2), restarted, colored("green")}, "True@3"},
		"not one beside another that is to be run again": {`{id: a, field: spec.size, ` + sized + `}, {id: b, field: spec.color, retries: 3, backoff: {initial: 2h, max: 2h}, steps: [{set: {annotations: {a: "${self.spec.color == 'blue' ? string(1/0) : 'x'}"}}}, {set: {conditions: [{type: Sized, status: true}]}}]}`, []func(*scene.Stage){colored("blue")}, "True@1"},
		"not one beside another that has failed":         {`{id: a, field: spec.size, ` + sized + `}, {id: b, field: spec.color, retries: 0, steps: [{set: {annotations: {a: "${self.spec.color == 'blue' ? string(1/0) : 'x'}"}}}, {set: {conditions: [{type: Sized, status: true}]}}]}`, []func(*scene.Stage){colored("blue"), func(s *scene.Stage) { s.Set("x", "metadata", "labels", "x") }}, "True@1"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+c.handlers+`]}`, func(s *scene.Stage) {
				s.Begin()
				for _, change := range c.changes {
					change(s)
					s.Advance(time.Minute)
				}
				if got := s.ConditionStatus("Sized"); got != c.want {
					t.Errorf("the generation is %d, the condition %s, want %s", s.Web().GetGeneration(), got, c.want)
				}
			})
		})
	}
}

// TestUnknownConditionsAreNotRestated holds that a condition of a handler in Go, which does not say that it sets it,
// is left as it is.
func TestUnknownConditionsAreNotRestated(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.OnReconcile("a", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetCondition("Sized", metav1.ConditionTrue, "Fine", "")
			return nil
		}, dsl.Field("spec.size"))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Set("blue", "spec", "color")
		s.Advance(time.Minute)
		if got := s.ConditionStatus("Sized"); got != "True@1" {
			s.T.Errorf("the condition is %s", got)
		}
	}})
}

// TestConditionsOfMoreThanTheViewAreNotRestated holds that a condition that is worked out of more than what its handler
// looks at is not restated.
func TestConditionsOfMoreThanTheViewAreNotRestated(t *testing.T) {
	for name, c := range map[string]struct {
		status, options string
		change          func(s *scene.Stage)
	}{
		"of related objects": {`${related.maps.size() == 0}`, ``, func(s *scene.Stage) {
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: some, labels: {x: y}}}`)
		}},
		"of children": {`${size(children) == 0}`, ``, nil},
		"of now":      {`${now < timestamp(self.metadata.creationTimestamp) + duration('30s')}`, ``, nil},
		"of old":      {`${cause == 'create' || old != null}`, ``, nil},
		"of cause":    {`${cause == 'create'}`, ``, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, related: [{name: maps, resource: configmaps.v1, selector: {matchLabels: {x: y}}}], handlers: [
				{id: a, causes: [create, update], field: spec.size, set: {conditions: [{type: Sized, status: "`+c.status+`"}]}}]}`, func(s *scene.Stage) {
				s.Begin()
				before := s.ConditionStatus("Sized")
				if c.change != nil {
					c.change(s)
				}
				s.Advance(time.Minute)
				s.Set("blue", "spec", "color")
				s.Advance(time.Minute)
				if got := s.ConditionStatus("Sized"); got != before {
					t.Errorf("the condition was %s, and is %s: it is worked out of more than the field", before, got)
				}
			})
		})
	}
}
