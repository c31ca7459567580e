// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// resourceThatLooks is a resource whose objects have a child and look at a ConfigMap, with one more handler, that is
// given.
func resourceThatLooks(handler string) string {
	return `{resource: foos.v1.example.com, owns: [deployments.v1.apps],
		related: [{name: settings, resource: configmaps.v1, object: settings}],
		handlers: [
			{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}}}},
			` + handler + `]}`
}

// viewOf is a handler in YAML and the changes that it is called for, once each, and no others. Those in may
// it may be called for, or not.
type viewOf struct {
	handler   string
	runs, may []string
}

func playViews(t *testing.T, views map[string]viewOf) {
	t.Helper()
	for name, view := range views {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, resourceThatLooks(view.handler), func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: low, other: x}}`)
				s.Create(furnished)
				s.Launch()
				s.RollOut(1)
				s.Settle()
				wantRunsFor(s, "look", view.runs, view.may)
			})
		})
	}
}

// joined joins lists of changes.
func joined(lists ...[]string) []string { return slices.Concat(lists...) }

var childChanges = []string{"children.web.status.readyReplicas", "children.web.status.replicas"}

var relatedChanges = []string{"related.settings.data.level", "related.settings.data.other"}

// TestExpressionsAreTheView holds that a level-triggered handler whose action works something out runs
// when what its expressions read has changed, and not otherwise.
func TestExpressionsAreTheView(t *testing.T) {
	set := func(expression string) string {
		return `{id: look, set: {status: {seen: "${` + expression + `}"}}}`
	}
	playViews(t, map[string]viewOf{
		"a field of spec":               {set(`self.spec.size`), []string{"spec.size"}, nil},
		"a field of status":             {set(`self.status.phase`), []string{"status.phase"}, nil},
		"one of each":                   {set(`string(self.spec.size) + self.status.phase`), []string{"spec.size", "status.phase"}, nil},
		"a field that may not be there": {set(`self.spec.?color.orValue('')`), []string{"spec.color"}, nil},
		"has() and both branches":       {set(`has(self.spec.color) ? self.spec.color : self.status.phase`), []string{"spec.color", "status.phase"}, nil},
		"a part of spec":                {set(`size(self.spec.sizes)`), []string{"spec.sizes.s", "spec.sizes.l"}, nil},
		"all of spec":                   {set(`size(self.spec)`), []string{"spec.size", "spec.color", "spec.sizes.s", "spec.sizes.l", "spec.items"}, nil},
		"a list":                        {set(`self.spec.items.map(i, i.size)`), []string{"spec.items"}, nil},
		"beside spec":                   {set(`self.data.a`), []string{"data.a"}, nil},
		"an index by a text":            {set(`self.spec.sizes['s']`), []string{"spec.sizes.s"}, nil},
		"an index by a variable":        {set(`self.spec.sizes[self.spec.pick]`), []string{"spec.sizes.s", "spec.sizes.l"}, nil},
		"a label":                       {set(`self.metadata.?labels.?tier.orValue('')`), []string{"metadata.labels.tier"}, nil},
		"an annotation":                 {set(`self.metadata.?annotations.?note.orValue('')`), []string{"metadata.annotations.note"}, nil},
		"finalizers":                    {set(`size(self.metadata.?finalizers.orValue([]))`), []string{"metadata.finalizers"}, nil},
		"the generation":                {set(`self.metadata.generation`), []string{"spec.size", "spec.color", "spec.sizes.s", "spec.sizes.l", "spec.items", "data.a"}, nil},
		"what does not change":          {set(`self.metadata.name`), nil, nil},
		"a child":                       {set(`children.web.?status.?readyReplicas.orValue(0)`), childChanges[:1], childChanges[1:]},
		"a related object":              {set(`related.settings.?data.?level.orValue('')`), relatedChanges[:1], relatedChanges[1:]},
		"a child and a field":           {set(`children.web.?status.?readyReplicas.orValue(0) + self.spec.size`), joined(childChanges[:1], []string{"spec.size"}), childChanges[1:]},
		"a whole object, to see whether it is ready": {set(`ready(self)`), []string{"spec.size", "metadata.labels.tier", "status.phase", "status.other"}, joined(essence, []string{"metadata.finalizers"})},
		"a filter": {
			`{id: look, when: self.spec.color != 'blue', set: {status: {seen: "${self.spec.size}"}}}`,
			[]string{"spec.size", "spec.color"}, nil,
		},
		"conditions": {
			`{id: look, set: {conditions: [{type: Ready, status: "${self.status.phase != 'Pending'}", reason: Seen, message: "${self.spec.color}"}]}}`,
			[]string{"spec.color", "status.phase"}, nil,
		},
		"labels, annotations and spec that are set": {
			`{id: look, set: {labels: {size: "${self.spec.size}"}, annotations: {phase: "${self.status.phase}"}, spec: {copy: "${self.data.a}"}}}`,
			[]string{"spec.size", "data.a", "status.phase"}, nil,
		},
		"children that are made": {
			`{id: look, apply: {copy: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}, data: {size: "${string(self.spec.size)}"}}}}`,
			[]string{"spec.size"}, childChanges,
		},
		"children that are made when, and for what": {
			`{id: look, apply: {copy: {includeWhen: self.status.phase != '', forEach: "${self.spec.items}", key: "${string(index)}",
				template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "copy-${key}", labels: {level: "${related.settings.data.level}"}}, data: {size: "${string(item.size)}"}}}}}`,
			[]string{"spec.items", "status.phase", "related.settings.data.level"}, joined(childChanges, relatedChanges[1:]),
		},
		"steps that work something out": {
			`{id: look, steps: [{set: {status: {seen: "${self.spec.size}"}}}, {when: self.spec.color != 'blue', set: {status: {also: "${self.status.phase}"}}}]}`,
			[]string{"spec.size", "spec.color", "status.phase"}, nil,
		},
	})
}

// TestOtherActionsLookAtTheEssence holds that all other handlers look at the essence, or at the field that
// they name; level-triggered ones also at what of status and metadata their filters and texts read.
func TestOtherActionsLookAtTheEssence(t *testing.T) {
	beside := joined(childChanges, relatedChanges)
	playViews(t, map[string]viewOf{
		"a log, level-triggered":                   {`{id: look, log: {message: hello}}`, joined(essence, beside), nil},
		"a log that reads status":                  {`{id: look, log: {message: "${self.status.phase}"}}`, joined(essence, []string{"status.phase"}, beside), nil},
		"an event that reads finalizers":           {`{id: look, event: {reason: Seen, message: "${size(self.metadata.?finalizers.orValue([]))}"}}`, joined(essence, []string{"metadata.finalizers"}, beside), nil},
		"a call with a filter that reads status":   {`{id: look, when: self.status.phase != '', call: test.Nothing}`, joined(essence, []string{"status.phase"}, beside), nil},
		"steps with one of them":                   {`{id: look, steps: [{set: {status: {seen: "${self.status.phase}"}}}, {log: {message: hello}}]}`, joined(essence, []string{"status.phase"}), beside},
		"one of create and update":                 {`{id: look, causes: [create, update], log: {message: hello}}`, essence, nil},
		"one of create and update, reading status": {`{id: look, causes: [create, update], log: {message: "${self.status.phase}"}}`, essence, nil},
		"a set of create and update":               {`{id: look, causes: [create, update], set: {status: {seen: "${self.spec.size}"}}}`, essence, nil},
		"a field of spec, of create and update":    {`{id: look, causes: [create, update], field: spec.size, log: {message: hello}}`, []string{"spec.size"}, nil},
		"a field of status, of update":             {`{id: look, causes: [update], field: status.phase, log: {message: hello}}`, []string{"status.phase"}, nil},
		"a field of status, level-triggered":       {`{id: look, causes: [create, update, resume], field: status.phase, call: test.Nothing}`, []string{"status.phase"}, nil},
		"finalizers, of update":                    {`{id: look, causes: [update], field: metadata.finalizers, event: {reason: Held, message: held}}`, []string{"metadata.finalizers"}, nil},
	})
}

// TestHandlersThatFeedEachOtherRest holds that two handlers which raise what the other one reads are reported
// as a loop, by the name of each.
func TestHandlersThatFeedEachOtherRest(t *testing.T) {
	feeds := func(id, reads, sets string) string {
		return `{id: ` + id + `, set: {status: {` + sets + `: "${self.?status.?` + reads + `.orValue(0) + 1}"}}}`
	}
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+feeds("ping", "pong", "ping")+`, `+feeds("pong", "ping", "pong")+`]}`, func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		loops := s.LoopEvents()
		if len(loops) == 0 || !strings.Contains(loops[0].Note, "ping, pong") {
			s.T.Errorf("the loop is reported as %v", loops)
		}
		before := s.Len()
		s.Advance(10 * time.Minute)
		if n := s.Len() - before; n > 200 {
			s.T.Errorf("in ten minutes there are %d calls", n)
		}
	})
}

// TestConditionsAreOfThePresentGeneration holds that a condition of a handler which does not look at what has
// changed says so all the same: it is true of the present generation, too.
func TestConditionsAreOfThePresentGeneration(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, owns: [deployments.v1.apps], handlers: [
		{id: sized, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}},
		{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: "${self.spec.size}"}}}}]}`, func(s *scene.Stage) {
		s.Begin()
		s.Set("blue", "spec", "color")
		s.Called()
		generations := func() (out []string) {
			list, _, _ := unstructured.NestedSlice(s.Web().Object, "status", "conditions")
			for _, item := range list {
				c := item.(map[string]any)
				out = append(out, fmt.Sprint(c["type"], " ", c["observedGeneration"]))
			}
			return out
		}
		now := s.Web().GetGeneration()
		want := []string{fmt.Sprint("Sized ", now)} // of Applied the schema knows nothing
		if diff := cmp.Diff(want, generations()); diff != "" {
			s.T.Errorf("conditions and their generations (-want +got):\n%s", diff)
		}
		s.Forget()
		s.Advance(time.Hour)
		s.Called()
		s.Wrote()
	})
}

// TestAViewOfAPathIsNotTheEssenceWithThatPath holds that a view of a path alone is another one than the essence with that path.
func TestAViewOfAPathIsNotTheEssenceWithThatPath(t *testing.T) {
	set := `{id: a, set: {status: {seen: "${self.status.phase}"}}}`
	log := `{id: b, log: {message: "${self.status.phase}"}}`
	for name, handlers := range map[string]string{"set first": set + "," + log, "log first": log + "," + set} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+handlers+`]}`, func(s *scene.Stage) {
				s.Create(furnished)
				s.Launch()
				s.Settle()
				a, b := len(s.Of("a", "web")), len(s.Of("b", "web"))
				s.Set("blue", "spec", "color")
				s.Settle()
				if n := len(s.Of("a", "web")) - a; n != 0 {
					t.Errorf("the set that reads status.phase ran %d times for spec.color", n)
				}
				if n := len(s.Of("b", "web")) - b; n != 1 {
					t.Errorf("the log, which looks at all but the status, ran %d times for spec.color", n)
				}
			})
		})
	}
}
