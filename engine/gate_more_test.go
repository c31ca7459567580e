// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWhatChangesBesidesWhileAWhenIsFalse holds what becomes of children when something else than their handler's when changes,
// and when the when is true again.
func TestWhatChangesBesidesWhileAWhenIsFalse(t *testing.T) {
	app := applies("app, "+small, template("a"))
	each := `{id: app, ` + small + `, forEach: "${self.spec.?items.orValue(['x', 'y'])}", key: "${item}", apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: "a-${item}"}}}}`
	tests := map[string]struct {
		handlers []string
		play     func(v *versions)
	}{
		"another handler goes": {[]string{app, applies("old", template("b"))}, func(v *versions) {
			v.version(app)
			v.Advance(time.Minute)
			v.has("ConfigMap a of app/a")
		}},
		"an item of forEach goes": {[]string{each}, func(v *versions) {
			v.set([]any{"x"}, "spec", "items")
			v.Advance(time.Minute)
			v.has("ConfigMap a-x of app/a/x", "ConfigMap a-y of app/a/y")
			v.Process.Restart()
			v.Advance(time.Minute)
			v.has("ConfigMap a-x of app/a/x", "ConfigMap a-y of app/a/y")
			v.size(1)
			v.Advance(time.Minute)
			v.has("ConfigMap a-x of app/a/x")
		}},
		"an includeWhen comes in place of the when": {[]string{app}, func(v *versions) {
			v.version(applies("app, includeWhen: self.spec.size < 2", template("a")))
			v.Advance(time.Minute)
			v.has()
			v.condition("Applied", "True@2 AllApplied: There is nothing to apply.")
		}},
		"somebody puts an object of his own in the child's place": {[]string{app}, func(v *versions) {
			v.Delete(configMaps, "default", "a")
			v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: theirs}}`)
			v.Advance(time.Hour)
			v.condition("Applied", closed(2, "generation 1 was applied last"))
			v.size(1)
			v.Advance(time.Minute)
			v.has("ConfigMap a of ")
			if got := value(v.Get(configMaps, "default", "a"), "data.a"); got != "theirs" {
				v.t.Errorf("what somebody made is overwritten: %v", got)
			}
		}},
		"the object leaves the operator's selector": {nil, func(v *versions) {
			v.size(1)
			v.set("yes", "metadata", "labels", "on")
			v.resources(`{resource: foos.v1.example.com, selector: {matchLabels: {"on": "yes"}}, handlers: [` +
				applies("app, "+small, template("a"), template("b", "ownership: labelled")) + `]}`)
			v.has("ConfigMap a of app/a", "ConfigMap b of app/b")
			v.size(2)
			v.Settle()
			v.set("no", "metadata", "labels", "on")
			v.Advance(time.Minute)
			v.has("ConfigMap a of app/a") // Kubernetes takes it away together with the object
			if left := v.web().GetFinalizers(); len(left) > 0 {
				v.t.Errorf("finalizers are left: %v", left)
			}
		}},
		"a handler that is gated, too, gets the child from one that goes": {[]string{app}, func(v *versions) {
			v.version(`{id: big, when: self.spec.size > 5, apply: {big: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}}}`)
			v.Advance(time.Minute)
			v.has() // the handler that made it is gone, and the other one may not act
			v.size(6)
			v.Advance(time.Minute)
			v.has("ConfigMap a of big/big")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				if test.handlers != nil {
					v.version(test.handlers...)
					v.Settle()
				} else {
					v.version(seesIt)
				}
				v.size(2)
				v.Settle()
				test.play(v)
			})
		})
	}
}

// TestAWhenOfAMachine holds that children of a machine, and of a part of a state, stay as they are while a when is false, and are
// put back later.
func TestAWhenOfAMachine(t *testing.T) {
	for name, where := range map[string][2]string{"of the machine": {small + ", ", ""}, "of a part of a state": {"", small + ", "}} {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				v.resources(fmt.Sprintf(`{resource: foos.v1.example.com, machine: {%s states: [{name: Run, terminal: true, during: [{name: make, %s apply: {%s}}]}]}}`,
					where[0], where[1], template("a")))
				v.has("ConfigMap a of machine.Run.make/a")
				v.size(2)
				v.Settle()
				v.spoil("c")
				v.Advance(time.Hour)
				v.Process.Restart()
				v.Advance(time.Hour)
				if got := value(v.Get(configMaps, "default", "a"), "data.a"); got != "c" {
					t.Errorf("what somebody changed is put back: %v", got)
				}
				v.Delete(configMaps, "default", "a")
				v.Advance(time.Hour)
				v.has()
				v.size(1)
				v.Advance(time.Minute)
				v.has("ConfigMap a of machine.Run.make/a")
			})
		})
	}
}

// TestAWaitEndsWhenItsWhenIsFalse holds that a handler which waits and may not act any more does not wait: the log says so, and
// /readyz does not name it.
func TestAWaitEndsWhenItsWhenIsFalse(t *testing.T) {
	for name, turn := range map[string]struct {
		off  string
		play func(s *stage)
	}{
		"its when is false":          {"when: self.spec.size < 2", func(s *stage) { s.size(2) }},
		"a label turns it away":      {"labels: {off: {exists: false}}", func(s *stage) { s.set("yes", "metadata", "labels", "off") }},
		"its includeWhen is false":   {"includeWhen: self.spec.size < 2", func(s *stage) { s.size(2) }},
		"what it waits for is there": {"", func(s *stage) { s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: pull, labels: {r: x}}}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			head := "{id: app, "
			if turn.off != "" {
				head += turn.off + ", "
			}
			written(t, `{resource: foos.v1.example.com, owns: [configmaps.v1], related: [{name: pull, resource: secrets.v1, object: pull}], handlers: [
				`+head+`apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {registry: "${related.pull.metadata.labels.r}"}}}}]}`, func(s *stage) {
				log := overheard(s, "waits")
				log()
				s.Create(web)
				s.Advance(30 * time.Second)
				s.says(log, `"msg"="waits for Secret default/pull`)
				if got := notReady(s); len(got) != 2 || !strings.Contains(got[1], "waits for Secret default/pull") {
					t.Errorf("while it waits /readyz has %q", got)
				}
				turn.play(s)
				s.Advance(time.Second)
				s.says(log, `"msg"="no longer waits for Secret default/pull .*"lasted"=`)
				if got := notReady(s); len(got) > 0 {
					t.Errorf("later /readyz has %q", got)
				}
				s.Advance(time.Hour)
				s.says(log)
			})
		})
	}
}
