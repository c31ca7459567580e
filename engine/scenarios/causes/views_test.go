// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const pods = "pods.v1"

// furnished is a web with something in each of its parts.
const furnished = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: iron}}, data: {a: b},
	spec: {size: 1, color: red, pick: s, sizes: {s: 1, l: 3}, items: [{size: 1}]}, status: {phase: Pending, other: 0}}`

// A change is one of web, or of what it makes or looks at. The number makes each another one.
var changes = []struct {
	path string
	make func(s *scene.Stage, n int64)
}{
	{"spec.size", changing("spec.size")},
	{"spec.color", naming("spec.color")},
	{"spec.sizes.s", changing("spec.sizes.s")},
	{"spec.sizes.l", changing("spec.sizes.l")},
	{"spec.items", func(s *scene.Stage, n int64) { s.Set([]any{map[string]any{"size": n}}, "spec", "items") }},
	{"data.a", naming("data.a")},
	{"metadata.labels.tier", naming("metadata.labels.tier")},
	{"metadata.labels.other", naming("metadata.labels.other")},
	{"metadata.annotations.note", naming("metadata.annotations.note")},
	{"metadata.finalizers", func(s *scene.Stage, n int64) {
		s.Set([]any{fmt.Sprintf("example.com/hold-%d", n)}, "metadata", "finalizers")
	}},
	{"status.phase", naming("status.phase")},
	{"status.other", changing("status.other")},
	{"children.web.status.readyReplicas", changingAnother(scene.Deployments, "web", "status.readyReplicas")},
	{"children.web.status.replicas", changingAnother(scene.Deployments, "web", "status.replicas")},
	{"related.settings.data.level", changingAnother(scene.ConfigMaps, "settings", "data.level")},
	{"related.settings.data.other", changingAnother(scene.ConfigMaps, "settings", "data.other")},
}

// changing sets a number, naming a text.
func changing(path string) func(s *scene.Stage, n int64) {
	return func(s *scene.Stage, n int64) { s.Set(n, dsl.MustParsePath(path)...) }
}

func naming(path string) func(s *scene.Stage, n int64) {
	return func(s *scene.Stage, n int64) { s.Set(fmt.Sprintf("v%d", n), dsl.MustParsePath(path)...) }
}

// changingAnother changes another object, if it is there.
func changingAnother(resource, name, path string) func(s *scene.Stage, n int64) {
	return func(s *scene.Stage, n int64) {
		if s.Get(resource, "default", name) == nil {
			return
		}
		s.Update(resource, "default", name, func(o *unstructured.Unstructured) {
			var value any = n
			if strings.HasPrefix(path, "data.") {
				value = fmt.Sprintf("v%d", n)
			}
			if err := unstructured.SetNestedField(o.Object, value, dsl.MustParsePath(path)...); err != nil {
				s.T.Error(err)
			}
		})
	}
}

// essence are the changes that a handler sees which looks at nothing in particular.
var essence = []string{
	"spec.size", "spec.color", "spec.sizes.s", "spec.sizes.l", "spec.items", "data.a",
	"metadata.labels.tier", "metadata.labels.other", "metadata.annotations.note",
}

// wantRunsFor makes each change and checks for which of them a handler is called, once each. Of those in may it
// may be either.
func wantRunsFor(s *scene.Stage, handler string, want, may []string) {
	s.T.Helper()
	var missed, extra []string
	for i, change := range changes {
		s.Settle()
		before := len(s.Of(handler, "web"))
		change.make(s, int64(10+i))
		s.Settle()
		wanted, n := slices.Contains(want, change.path), len(s.Of(handler, "web"))-before
		switch {
		case wanted && n == 0:
			missed = append(missed, change.path)
		case n > 1:
			extra = append(extra, fmt.Sprintf("%s (%d times)", change.path, n))
		case n > 0 && !wanted && !slices.Contains(may, change.path):
			extra = append(extra, change.path)
		}
	}
	if len(missed)+len(extra) > 0 {
		s.T.Errorf("%s is not called for %v, and for nothing at %v", handler, missed, extra)
	}
	before := s.Len()
	s.Advance(time.Hour)
	if n := s.Len() - before; n > 0 {
		s.T.Errorf("afterwards there are %d calls for nothing", n)
	}
}

// TestTheViewOfAHandlerInGoIsTheEssenceOrItsFields holds what a handler in Go looks at: the essence, or the fields that it names.
func TestTheViewOfAHandlerInGoIsTheEssenceOrItsFields(t *testing.T) {
	for name, view := range map[string]struct {
		fields []string
		runs   []string
	}{
		"nothing named is the essence": {nil, essence},
		"one field":                    {[]string{"spec.size"}, []string{"spec.size"}},
		"a field with more below it":   {[]string{"spec.sizes"}, []string{"spec.sizes.s", "spec.sizes.l"}},
		"several fields":               {[]string{"spec.size", "metadata.labels.tier"}, []string{"spec.size", "metadata.labels.tier"}},
		"a field of status":            {[]string{"status.phase"}, []string{"status.phase"}},
		"all of status":                {[]string{"status"}, []string{"status.phase", "status.other"}},
		"fields of spec and of status": {[]string{"spec.size", "status.phase"}, []string{"spec.size", "status.phase"}},
		"all labels":                   {[]string{"metadata.labels"}, []string{"metadata.labels.tier", "metadata.labels.other"}},
		"finalizers":                   {[]string{"metadata.finalizers"}, []string{"metadata.finalizers"}},
	} {
		var options []dsl.Option
		for _, path := range view.fields {
			options = append(options, dsl.Field(path))
		}
		for kind, causes := range map[string][]dsl.Cause{
			"a level-triggered handler":    {dsl.Create, dsl.Update, dsl.Resume},
			"a handler of create, update":  scene.CreateAndUpdate(),
			"a handler of update":          {dsl.Update},
			"one that needs no old object": {dsl.Update},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
					if kind == "one that needs no old object" {
						options = append(slices.Clone(options), dsl.NoOld())
					}
					foo.On(causes, "look", j.Note("look"), options...)
				}, Play: func(s *scene.Stage) {
					s.Create(furnished)
					s.Launch()
					wantRunsFor(s, "look", view.runs, nil)
					if !slices.Contains(causes, dsl.Resume) {
						wantOneRunAfterUnseenChange(s, "look", view.runs[len(view.runs)-1])
					}
				}})
			})
		}
	}
}

// wantOneRunAfterUnseenChange checks that a handler is not called after a restart, but once when there was a change that no
// process saw.
func wantOneRunAfterUnseenChange(s *scene.Stage, handler, path string) {
	s.T.Helper()
	before := len(s.Of(handler, "web"))
	s.Process.Restart()
	if n := len(s.Of(handler, "web")) - before; n > 0 {
		s.T.Errorf("after a restart %s was called %d times", handler, n)
	}
	before = len(s.Of(handler, "web"))
	s.Process.Kill()
	for _, change := range changes {
		if change.path == path {
			change.make(s, 99)
		}
	}
	s.Process.Restart()
	s.Advance(time.Minute)
	if n := len(s.Of(handler, "web")) - before; n != 1 {
		s.T.Errorf("after a change of %s that no process saw %s was called %d times", path, handler, n)
	}
}

// TestAHandlerRunsForAStatusThatOthersWrite holds that handlers over Pods and Deployments run when these become what one
// waits for.
func TestAHandlerRunsForAStatusThatOthersWrite(t *testing.T) {
	status := func(s *scene.Stage, resource string, status map[string]any) {
		s.Update(resource, "default", "web", func(o *unstructured.Unstructured) { o.Object["status"] = status })
		s.Settle()
	}
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web}, status: {phase: Pending}}`
	running := func(s *scene.Stage) {
		s.Create(pod)
		s.Launch()
		s.Forget()
		calls := func(when string, want int) {
			s.T.Helper()
			if n := len(s.Of("up", "web")); n != want {
				s.T.Errorf("%s it was called %d times, want %d", when, n, want)
			}
		}
		before := len(s.Of("up", "web"))
		status(s, pods, map[string]any{"phase": "Pending", "hostIP": "10.0.0.1"})
		calls("while it is pending", before)
		status(s, pods, map[string]any{"phase": "Running"})
		calls("when it is running", before+1)
		status(s, pods, map[string]any{"phase": "Running", "podIP": "10.1.0.1"})
		s.Advance(time.Hour)
		calls("while it runs", before+1)
	}
	t.Run("a Pod that is running, in Go", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			s := scene.NewStage(t, c)
			s.Operator.Resource(pods, func(pod *dsl.Resource) { pod.OnField("status.phase", "up", s.Note("up")) })
			running(s)
		})
	})
	for name, handler := range map[string]string{
		"a Pod that is running, by a field":               `{id: up, causes: [update], field: status.phase, log: {message: up}}`,
		"a Pod that is running, by a level-triggered one": `{id: up, when: self.status.phase == 'Running', field: status.phase, event: {reason: Up, message: up}}`,
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: pods.v1, handlers: [`+handler+`]}`, func(s *scene.Stage) { running(s) })
		})
	}
	for name, action := range map[string]string{
		"log":   `log: {message: up}`,
		"event": `event: {reason: Up, message: "${self.status.availableReplicas} are up"}`,
		"call":  `call: test.Nothing`,
	} {
		t.Run("a Deployment that is available, for "+name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: deployments.v1.apps, handlers: [{id: up, when: "self.?status.?availableReplicas.orValue(0) > 0", `+action+`}]}`, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.DeploymentNamed("web", 1))
				s.Called()
				status(s, scene.Deployments, map[string]any{"replicas": int64(1)})
				s.Called()
				status(s, scene.Deployments, map[string]any{"replicas": int64(1), "availableReplicas": int64(1)})
				if n := len(s.Of("up", "web")); n != 1 {
					s.T.Errorf("it was called %d times", n)
				}
				status(s, scene.Deployments, map[string]any{"replicas": int64(2), "availableReplicas": int64(1)})
				if n := len(s.Of("up", "web")); n != 1 {
					s.T.Errorf("with another status that it does not look at it was called %d times", n)
				}
				status(s, scene.Deployments, map[string]any{"replicas": int64(2), "availableReplicas": int64(2)})
				if n := len(s.Of("up", "web")); n != 2 {
					s.T.Errorf("when a second one was available it was called %d times in all", n)
				}
			})
		})
	}
}

// TestAnEventHandlerRunsForEveryEvent holds that handlers of the cause event see all that happens to an object, and that
// nothing is remembered of it.
func TestAnEventHandlerRunsForEveryEvent(t *testing.T) {
	// kinds notes the event of the watch instead of the cause.
	kinds := func(j *kit.Journal, then ...dsl.Func) dsl.Func {
		noted := j.Note("see", then...)
		return func(c context.Context, r *dsl.Request) error {
			j.Add(string(r.Event))
			return noted(c, r)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"with the event of the watch": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnEvent("see", kinds(j)) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("ADDED", "see event")
				s.Resize(2)
				s.Called("MODIFIED", "see event")
				s.Process.Restart()
				s.Called("ADDED", "see event")
				s.Remove()
				s.Called("DELETED", "see event")
				s.Process.Restart()
				s.Called()
			},
		},
		"a failed one again, as the same event": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnEvent("see", kinds(j, scene.Succeeds, scene.Fails(scene.ErrAgain), scene.Succeeds, scene.Fails(scene.ErrAgain), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Forget()
				s.Set("Running", "status", "phase")
				s.Advance(time.Minute)
				s.Called("MODIFIED", "see event", "MODIFIED", "see event 2")
				s.Remove()
				s.Advance(time.Minute)
				s.Called("DELETED", "see event", "DELETED", "see event 2")
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"a deletion beside a delete handler, which runs once": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnEvent("see", kinds(j), dsl.Label("tier", "iron"))
				foo.OnDelete("last", j.Note("last"))
			},
			Play: func(s *scene.Stage) {
				s.Create(furnished)
				s.Launch()
				s.Forget()
				s.Remove()
				s.Called("MODIFIED", "see event", "last delete", "DELETED", "see event")
				if s.Web() != nil {
					s.T.Error("the object is still there")
				}
			},
		},
		"not those of objects that its filters leave out": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnEvent("see", kinds(j), dsl.Label("tier", "gold"))
			},
			Play: func(s *scene.Stage) {
				s.Create(furnished)
				s.Launch()
				s.Set("Running", "status", "phase")
				s.Called()
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("MODIFIED", "see event")
			},
		},
		"each once, status and deletion included": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnEvent("see", j.Note("see")) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("see event")
				s.Resize(2)
				s.Called("see event")
				s.Set("Running", "status", "phase")
				s.Called("see event")
				s.Set([]any{"example.com/hold"}, "metadata", "finalizers")
				s.Called("see event")
				s.Remove()
				s.Called("see event")
				s.Set([]any{}, "metadata", "finalizers")
				s.Called("see event")
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
				if s.Web() != nil {
					s.T.Error("the object is still there")
				}
			},
		},
		"beside others, which do not run for that": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnEvent("see", j.Note("see"))
				foo.OnUpdate("changed", j.Note("changed"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Set("Running", "status", "phase")
				s.Called("see event")
				s.Wrote()
			},
		},
	})
	t.Run("in YAML", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: see, causes: [event], log: {message: "${self.metadata.name}"}}]}`, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("see event")
			s.Set("Running", "status", "phase")
			s.Called("see event")
		})
	})
}
