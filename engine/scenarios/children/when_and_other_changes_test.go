// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAFalseWhenKeepsChildrenThroughOtherChanges holds what becomes of children when something else than their handler's
// when changes, and when the when is true again.
func TestAFalseWhenKeepsChildrenThroughOtherChanges(t *testing.T) {
	app := scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a"))
	each := `{id: app, ` + small + `, forEach: "${self.spec.?items.orValue(['x', 'y'])}", key: "${item}", apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: "a-${item}"}}}}`
	tests := map[string]struct {
		handlers []string
		play     func(v *scene.Versions)
	}{
		"another handler goes": {[]string{app, scene.AppliesTemplates("old", scene.ConfigMapTemplate("b"))}, func(v *scene.Versions) {
			v.Next(app)
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a of app/a")
		}},
		"an item of forEach goes": {[]string{each}, func(v *scene.Versions) {
			v.Set([]any{"x"}, "spec", "items")
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a-x of app/a/x", "ConfigMap a-y of app/a/y")
			v.Process.Restart()
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a-x of app/a/x", "ConfigMap a-y of app/a/y")
			v.Resize(1)
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a-x of app/a/x")
		}},
		"an includeWhen comes in place of the when": {[]string{app}, func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("app, includeWhen: self.spec.size < 2", scene.ConfigMapTemplate("a")))
			v.Advance(time.Minute)
			v.WantChildren()
			v.WantCondition("Applied", "True@2 AllApplied: There is nothing to apply.")
		}},
		"somebody puts an object of his own in the child's place": {[]string{app}, func(v *scene.Versions) {
			v.Delete(scene.ConfigMaps, "default", "a")
			v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: theirs}}`)
			v.Advance(time.Hour)
			v.WantCondition("Applied", closed(2, "generation 1 was applied last"))
			v.Resize(1)
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a of ")
			if got := scene.ValueAt(v.Get(scene.ConfigMaps, "default", "a"), "data.a"); got != "theirs" {
				v.T.Errorf("what somebody made is overwritten: %v", got)
			}
		}},
		"the object leaves the operator's selector": {nil, func(v *scene.Versions) {
			v.Resize(1)
			v.Set("yes", "metadata", "labels", "on")
			v.NextResources(`{resource: foos.v1.example.com, selector: {matchLabels: {"on": "yes"}}, handlers: [` +
				scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a"), scene.ConfigMapTemplate("b", "ownership: labelled")) + `]}`)
			v.WantChildren("ConfigMap a of app/a", "ConfigMap b of app/b")
			v.Resize(2)
			v.Settle()
			v.Set("no", "metadata", "labels", "on")
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a of app/a") // Kubernetes takes it away together with the object
			if left := v.Web().GetFinalizers(); len(left) > 0 {
				v.T.Errorf("finalizers are left: %v", left)
			}
		}},
		"a handler that is gated, too, gets the child from one that goes": {[]string{app}, func(v *scene.Versions) {
			v.Next(`{id: big, when: self.spec.size > 5, apply: {big: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}}}`)
			v.Advance(time.Minute)
			v.WantChildren() // the handler that made it is gone, and the other one may not act
			v.Resize(6)
			v.Advance(time.Minute)
			v.WantChildren("ConfigMap a of big/big")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				if test.handlers != nil {
					v.Next(test.handlers...)
					v.Settle()
				} else {
					v.Next(scene.LabelsSeen)
				}
				v.Resize(2)
				v.Settle()
				test.play(v)
			})
		})
	}
}

// TestAFalseWhenOfAMachineLeavesChildrenAsTheyAre holds that children of a machine, and of a part of a state, stay as they
// are while a when is false, and are put back later.
func TestAFalseWhenOfAMachineLeavesChildrenAsTheyAre(t *testing.T) {
	for name, where := range map[string][2]string{"of the machine": {small + ", ", ""}, "of a part of a state": {"", small + ", "}} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				v.NextResources(fmt.Sprintf(`{resource: foos.v1.example.com, machine: {%s states: [{name: Run, terminal: true, during: [{name: make, %s apply: {%s}}]}]}}`,
					where[0], where[1], scene.ConfigMapTemplate("a")))
				v.WantChildren("ConfigMap a of machine.Run.make/a")
				v.Resize(2)
				v.Settle()
				v.SpoilConfigMap("c")
				v.Advance(time.Hour)
				v.Process.Restart()
				v.Advance(time.Hour)
				if got := scene.ValueAt(v.Get(scene.ConfigMaps, "default", "a"), "data.a"); got != "c" {
					t.Errorf("what somebody changed is put back: %v", got)
				}
				v.Delete(scene.ConfigMaps, "default", "a")
				v.Advance(time.Hour)
				v.WantChildren()
				v.Resize(1)
				v.Advance(time.Minute)
				v.WantChildren("ConfigMap a of machine.Run.make/a")
			})
		})
	}
}

// TestAWaitEndsWhenItsWhenIsFalse holds that a handler which waits and may not act any more does not wait: the log says so, and
// /readyz does not name it.
func TestAWaitEndsWhenItsWhenIsFalse(t *testing.T) {
	for name, turn := range map[string]struct {
		off  string
		play func(s *scene.Stage)
	}{
		"its when is false":        {"when: self.spec.size < 2", func(s *scene.Stage) { s.Resize(2) }},
		"a label turns it away":    {"labels: {off: {exists: false}}", func(s *scene.Stage) { s.Set("yes", "metadata", "labels", "off") }},
		"its includeWhen is false": {"includeWhen: self.spec.size < 2", func(s *scene.Stage) { s.Resize(2) }},
		"what it waits for is there": {"", func(s *scene.Stage) {
			s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: pull, labels: {r: x}}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			head := "{id: app, "
			if turn.off != "" {
				head += turn.off + ", "
			}
			scene.PlayYAML(t, `{resource: foos.v1.example.com, owns: [configmaps.v1], related: [{name: pull, resource: secrets.v1, object: pull}], handlers: [
				`+head+`apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {registry: "${related.pull.metadata.labels.r}"}}}}]}`, func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "waits")
				log()
				s.Create(scene.Web)
				s.Advance(30 * time.Second)
				s.WantLines(log, `"msg"="waits for Secret default/pull`)
				if got := scene.NotReadyObjects(s); len(got) != 2 || !strings.Contains(got[1], "waits for Secret default/pull") {
					t.Errorf("while it waits /readyz has %q", got)
				}
				turn.play(s)
				s.Advance(time.Second)
				s.WantLines(log, `"msg"="no longer waits for Secret default/pull to exist .*"lasted"=`)
				if got := scene.NotReadyObjects(s); len(got) > 0 {
					t.Errorf("later /readyz has %q", got)
				}
				s.Advance(time.Hour)
				s.WantLines(log)
			})
		})
	}
}
