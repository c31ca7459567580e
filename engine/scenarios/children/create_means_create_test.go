// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerRunsForNoMoreThanItsCauses holds that an action brings no cause child: changes of its children run a handler that
// applies, and its other steps, only if it has that cause, or reconcile.
func TestAHandlerRunsForNoMoreThanItsCauses(t *testing.T) {
	const child = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {size: "${string(self.spec.size)}"}}`
	tests := map[string]struct {
		handler string
		// back: drift is put back. Runs is how often the handler runs for an object that is created, of which the child changes, is
		// deleted, and whose size changes.
		back bool
		runs int
	}{
		"a handler of create":                   {`causes: [create], steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 1},
		"the mail comes first":                  {`causes: [create], steps: [{name: mail, call: test.Mail}, {apply: {c: ` + child + `}}]`, false, 1},
		"a labelled child, which brings delete": {`causes: [create], steps: [{apply: {c: {ownership: labelled, template: ` + child + `}}}, {name: mail, call: test.Mail}]`, false, 1},
		"all drift is to be put back":           {`causes: [create], steps: [{apply: {c: {drift: strict, template: ` + child + `}}}, {name: mail, call: test.Mail}]`, false, 1},
		"the mail reads the child":              {`causes: [create], steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail, when: "children.c.metadata.name != ''"}]`, false, 1},
		"a handler of update":                   {`causes: [update], steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 1},
		"a handler of create and update":        {`causes: [create, update], steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 2},
		"with forEach":                          {`causes: [create], forEach: "${[self.metadata.name]}", steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 1},
		"a handler of create and child":         {`causes: [create, child], steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, true, 3},
		"a level-triggered one without child":   {`causes: [create, update, resume], steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 2},
		"a level-triggered one":                 {`steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, true, 4},
		"a timer":                               {`every: 1000h, initialDelay: 0s, steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 1},
		"a time":                                {`at: self.metadata.creationTimestamp, steps: [{apply: {c: ` + child + `}}, {name: mail, call: test.Mail}]`, false, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var mails atomic.Int32
			playMail(t, `{resource: foos.v1.example.com, handlers: [{id: h, `+tt.handler+`}]}`, &mails, func(s *scene.Stage) {
				s.Create(scene.Web)
				s.Advance(time.Minute)
				if strings.Contains(tt.handler, "[update]") {
					s.Resize(3)
					s.Advance(time.Minute)
				}
				s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"size": "7"} })
				s.Advance(time.Minute)
				if got := scene.ValueAt(s.Get(scene.ConfigMaps, "default", "web"), "data.size") != "7"; got != tt.back {
					t.Errorf("a change of the child is put back: %v", got)
				}
				s.Delete(scene.ConfigMaps, "default", "web")
				s.Advance(time.Minute)
				if got := s.Get(scene.ConfigMaps, "default", "web") != nil; got != tt.back {
					t.Errorf("a child that was deleted is put back: %v", got)
				}
				if !strings.Contains(tt.handler, "[update]") {
					s.Resize(2)
					s.Advance(time.Minute)
				}
				s.Advance(time.Hour)
				if got := int(mails.Load()); got != tt.runs {
					t.Errorf("it ran %d times, want %d", got, tt.runs)
				}
				s.Remove()
				s.Advance(time.Minute)
				if s.Web() != nil || int(mails.Load()) != tt.runs {
					t.Errorf("it ran %d times, and after the deletion there is %v", mails.Load(), s.Web())
				}
			})
		})
	}
}

// playMail plays with an operator that may call test.Mail, which counts.
func playMail(t *testing.T, resources string, mails *atomic.Int32, play func(s *scene.Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		registry := handlers.Standard()
		registry.Function(dsl.Function{Name: "test.Mail", Needs: []dsl.Need{}, Func: func(context.Context, *dsl.Request) error {
			mails.Add(1)
			return nil
		}})
		op, err := config.Parse("operator.yaml", []byte(fmt.Sprintf("{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [%s]}", resources)), registry)
		if err != nil {
			t.Fatal(err)
		}
		s := scene.NewStage(t, c)
		s.Operator = op
		s.Launch()
		play(s)
	})
}

// TestAHandlerOfCreateGoesOnUntilItHasSucceeded holds that a handler without the cause child waits for its children all the same,
// and that its steps which are done are not repeated meanwhile.
func TestAHandlerOfCreateGoesOnUntilItHasSucceeded(t *testing.T) {
	const database = `{readyWhen: "child.?data.?state.orValue('') == 'up'", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: "1"}}}`
	state := func(s *scene.Stage, value string) {
		s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["state"] = value })
		s.Settle()
	}
	for process, restart := range map[string]func(s *scene.Stage){
		"": func(*scene.Stage) {}, ", and a restart in between": func(s *scene.Stage) { s.Process.Restart() },
	} {
		t.Run("a child that is waited for"+process, func(t *testing.T) {
			var mails atomic.Int32
			playMail(t, `{resource: foos.v1.example.com, handlers: [{id: h, causes: [create], steps: [{name: first, call: test.Mail}, {apply: {db: `+database+`}}, {name: last, call: test.Mail}]}]}`, &mails, func(s *scene.Stage) {
				s.Create(scene.Web)
				s.Settle()
				state(s, "starting")
				s.Advance(11 * time.Second) // what is done is in memory alone so long
				restart(s)
				s.Settle()
				state(s, "almost")
				if got := mails.Load(); got != 1 {
					t.Errorf("while the child starts there are %d mails", got)
				}
				state(s, "up")
				if got := mails.Load(); got != 2 {
					t.Errorf("when it is up, at once, there are %d mails", got)
				}
				state(s, "down")
				s.Delete(scene.ConfigMaps, "default", "web")
				s.Advance(time.Hour)
				if got := mails.Load(); got != 2 || s.Get(scene.ConfigMaps, "default", "web") != nil {
					t.Errorf("after it has succeeded there are %d mails", got)
				}
			})
		})
	}
	t.Run("a child that nobody wants any more goes, also if another handler might have wanted it", func(t *testing.T) {
		for name, other := range map[string]string{
			"one that runs later":            `{id: other, apply: {o: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {size: "${string(self.spec.size)}"}}}}`,
			"one of changes that runs later": `{id: other, causes: [create, update], apply: {o: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {size: "${string(self.spec.size)}"}}}}`,
			"one that fails for a while":     `{id: other, apply: {o: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {size: "${self.spec.size == 2 && !has(self.spec.ok) ? [][0] : 'x'}"}}}}`,
			"one that comes after this":      `{id: other, after: [h], causes: [create, update], apply: {o: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {size: "${string(self.spec.size)}"}}}}`,
		} {
			t.Run(name, func(t *testing.T) {
				var mails atomic.Int32
				playMail(t, `{resource: foos.v1.example.com, handlers: [
					{id: h, causes: [create, update], steps: [{name: first, call: test.Mail}, {apply: {c: {includeWhen: self.spec.size == 1, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}}}, {name: last, call: test.Mail}]}, `+other+`]}`, &mails, func(s *scene.Stage) {
					s.Create(scene.Web)
					s.Advance(time.Minute)
					s.Resize(2)
					s.Advance(time.Minute)
					if name == "one that fails for a while" {
						if got := mails.Load(); got != 3 || s.Get(scene.ConfigMaps, "default", "web") == nil {
							t.Errorf("while the other fails there are %d mails", got)
						}
						s.Set(true, "spec", "ok")
						s.Advance(10 * time.Minute)
					}
					s.Advance(time.Minute)
					stays := name == "one that comes after this" // they would wait for each other
					if got := s.Get(scene.ConfigMaps, "default", "web") != nil; got != stays {
						t.Errorf("the child is there: %v", got)
					}
					if o := s.Get(scene.ConfigMaps, "default", "other"); o == nil || scene.ValueAt(o, "data.size") == "1" {
						t.Errorf("the other one's child is %v", o)
					}
					s.Forget()
					s.Advance(time.Hour)
					s.Wrote()
				})
			})
		}
	})
}

// TestAChildThatIsMadeOnceIsNotMissed holds what conditions say of a child that a handler of create has made, and that somebody
// deletes: Applied is about the last run, and Ready about what is there or is put back.
func TestAChildThatIsMadeOnceIsNotMissed(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, ready: true, handlers: [
		`+scene.AppliesChild("keep", "ConfigMap", "kept")+`, {id: once, causes: [create], apply: {o: {apiVersion: v1, kind: ConfigMap, metadata: {name: once}}}}]}`, func(s *scene.Stage) {
		s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		s.Launch()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		for _, name := range []string{"once", "kept"} {
			s.Delete(scene.ConfigMaps, "default", name)
			s.Advance(time.Minute)
			if back := s.Get(scene.ConfigMaps, "default", name) != nil; back != (name == "kept") {
				t.Errorf("%s is put back: %v", name, back)
			}
			for _, condition := range []string{"OnceApplied", "KeepApplied", "Applied", "Ready"} {
				if got := s.ConditionStatus(condition); got != "True@1" {
					t.Errorf("when %s was deleted, %s is %v", name, condition, got)
				}
			}
		}
	})
}
