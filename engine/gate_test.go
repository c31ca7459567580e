// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// gated is follow with Foos that have conditions.
func gated(t *testing.T, play func(v *versions)) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"}, enginetest.Resource{Name: bars, Kind: "Bar"})
		c.Update(crdsOf, "", "foos.example.com", addConditions)
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		c.Create(web)
		play(&versions{stage: newStage(t, c), log: &lines{}})
	})
}

// condition fails the test unless the condition says this: its status, generation, reason and message. A type without
// more says that it is not there.
func (v *versions) condition(kind string, want ...string) {
	v.t.Helper()
	v.Settle()
	got := []string{}
	list, _, _ := unstructured.NestedSlice(v.web().Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == kind {
			got = append(got, fmt.Sprintf("%v@%v %v: %v", c["status"], c["observedGeneration"], c["reason"], c["message"]))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		v.t.Errorf("condition %s is %q, want %q", kind, got, want)
	}
}

// spoil changes the ConfigMap a by hand.
func (v *versions) spoil(data string) {
	v.t.Helper()
	v.Update(configMaps, "default", "a", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": data} })
	v.Settle()
}

const (
	small      = "when: self.spec.size < 2"
	thePlace   = "The when at operator.yaml:1 is false, so the children stay as they are"
	allApplied = "True@%d AllApplied: The child is applied."
	sayIt      = "patch foos/status default/web"
)

// closed is what the condition of a handler says whose when is false in a generation.
func closed(generation int, last string) string {
	if last != "" {
		last = "; " + last
	}
	return fmt.Sprintf("Unknown@%d Filtered: %s%s.", generation, thePlace, last)
}

// TestAWhenThatIsFalseLeavesChildrenAsTheyAre holds that children are neither taken away nor put back while the when of their
// handler or step is false, whatever it reads and however they are tied, and that the condition says so, once.
func TestAWhenThatIsFalseLeavesChildrenAsTheyAre(t *testing.T) {
	each := func(options, of string) string {
		return `{id: app, forEach: "${[1]}", key: "${string(item)}", ` + options + `apply: {` + of + `}}`
	}
	tests := map[string]struct {
		handlers string
		// silent: there is no condition, as for handlers with forEach.
		silent bool
	}{
		"of an owned child":             {handlers: applies("app, "+small, template("a"))},
		"of a labelled child":           {handlers: applies("app, "+small, template("a", "ownership: labelled"))},
		"of a child that is orphaned":   {handlers: applies("app, "+small, template("a", "onDelete: orphan"))},
		"of a child that is retained":   {handlers: applies("app, "+small, template("a", "onDelete: retain"))},
		"of a child of nobody's":        {handlers: applies("app, "+small, template("a", "ownership: none"))},
		"that reads the cause, too":     {handlers: applies("app, when: \"cause != 'delete' && self.spec.size < 2\"", template("a"))},
		"that reads children":           {handlers: applies("app, when: 'self.spec.size < 2 || !has(children.a)'", template("a"))},
		"of a step":                     {handlers: `{id: app, steps: [{name: one, ` + small + `, apply: {` + template("a") + `}}]}`},
		"of a handler with steps":       {handlers: `{id: app, ` + small + `, steps: [{name: one, apply: {` + template("a") + `}}]}`},
		"of a handler with forEach":     {handlers: each(small+", ", template("a")), silent: true},
		"of a step of one with forEach": {handlers: `{id: app, forEach: "${[1]}", key: "${string(item)}", steps: [{name: one, when: self.spec.size < 1 + item, apply: {` + template("a") + `}}]}`, silent: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				expect := func(condition string, writes ...string) {
					t.Helper()
					if !test.silent {
						v.condition("Applied", condition)
						v.Wrote(writes...)
						return
					}
					v.Settle()
					v.Wrote()
				}
				v.version(test.handlers)
				v.Settle()
				made := v.Get(configMaps, "default", "a")
				v.Forget()
				v.size(2)
				expect(closed(2, "generation 1 was applied last"), sayIt)
				if now := v.Get(configMaps, "default", "a"); now == nil || now.GetResourceVersion() != made.GetResourceVersion() {
					t.Fatalf("the child was touched: %v", now)
				}
				v.spoil("c")
				v.Advance(time.Hour)
				v.Process.Restart()
				v.Advance(time.Hour)
				if got := value(v.Get(configMaps, "default", "a"), "data.a"); got != "c" {
					t.Errorf("what somebody changed is put back: %v", got)
				}
				v.Wrote()
				v.Delete(configMaps, "default", "a")
				v.Advance(time.Minute)
				v.Forget() // what is tied by a label is taken off the owner's record
				v.Advance(time.Hour)
				v.has()
				v.Wrote()
				v.size(3)
				expect(closed(3, "generation 1 was applied last"), sayIt)
				v.size(1)
				v.Advance(time.Minute)
				v.has(strings.TrimSpace("ConfigMap a of " + made.GetAnnotations()["op.handwerk.dev/child"]))
				if !test.silent {
					v.condition("Applied", fmt.Sprintf(allApplied, 4))
				}
			})
		})
	}
}

// TestWhatComesWhileAWhenIsFalse holds what becomes of children whose handler may not act.
func TestWhatComesWhileAWhenIsFalse(t *testing.T) {
	app := applies("app, "+small, template("a"))
	tests := map[string]struct {
		handlers []string
		play     func(v *versions)
	}{
		"the handler has another id": {[]string{app}, func(v *versions) {
			v.version(applies("other, was: app, "+small, template("a")))
			v.Settle()
			v.Wrote()
			v.has("ConfigMap a of app/a")
			v.size(1)
			v.Settle()
			v.has("ConfigMap a of other/a")
		}},
		"the handler has another id, and a condition of its own": {[]string{app, applies("two", template("b"))}, func(v *versions) {
			v.version(applies("other, was: app, "+small, template("a")), applies("two", template("b")))
			v.condition("OtherApplied", closed(2, ""))
			v.has("ConfigMap a of app/a", "ConfigMap b of two/b")
		}},
		"an earlier version without the filter is back": {[]string{app}, func(v *versions) {
			v.spoil("c")
			v.version(applies("app", template("a")))
			v.condition("Applied", fmt.Sprintf(allApplied, 2))
			if got := value(v.Get(configMaps, "default", "a"), "data.a"); got != "b" {
				v.t.Errorf("data.a is %v", got)
			}
		}},
		"an earlier version with another child is back": {[]string{app}, func(v *versions) {
			v.version(applies("app, "+small, template("b")))
			v.Settle()
			v.has("ConfigMap a of app/a")
			v.size(1)
			v.Settle()
			v.has("ConfigMap b of app/b")
		}},
		"the handler goes": {[]string{app}, func(v *versions) {
			v.version(seesIt)
			v.Settle()
			v.has()
		}},
		"another handler makes the child": {[]string{app, `{id: big, when: self.spec.size > 1, apply: {big: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}}}`}, func(v *versions) {
			v.Advance(5 * time.Second) // it asks the other one first
			v.has("ConfigMap a of big/big")
			v.condition("BigApplied", fmt.Sprintf(allApplied, 2))
			v.condition("AppApplied", closed(2, "generation 1 was applied last"))
			v.condition("Applied", "Unknown@2 Filtered: app: "+thePlace+"; generation 1 was applied last.")
			v.size(1)
			v.Advance(5 * time.Second)
			v.has("ConfigMap a of app/a")
			v.condition("BigApplied", closed(3, "generation 2 was applied last"))
		}},
		"what comes after it is done": {[]string{app, applies("next, after: [app]", template("b"))}, func(v *versions) {
			v.set("blue", "spec", "color")
			v.Delete(configMaps, "default", "b")
			v.Settle()
			v.has("ConfigMap a of app/a", "ConfigMap b of next/b")
		}},
		"a label keeps the handler from the object, too": {[]string{applies("app, "+small+", labels: {off: {exists: false}}", template("a"))}, func(v *versions) {
			v.set("yes", "metadata", "labels", "off")
			v.Settle()
			v.has()
		}},
		"events that change nothing": {[]string{app}, func(v *versions) {
			v.Forget()
			for i := range 20 {
				v.set(fmt.Sprint(i), "metadata", "annotations", "example.com/note")
				v.spoil(fmt.Sprint(i))
			}
			v.Advance(time.Hour)
			v.Wrote()
		}},
		"it fails": {[]string{applies("app, when: '1 / (2 - self.spec.size) > 0'", template("a"))}, func(v *versions) {
			v.spoil("c")
			v.Advance(time.Hour)
			v.Process.Restart()
			v.Advance(time.Hour)
			v.has("ConfigMap a of app/a")
			v.size(0) // it is false
			v.condition("Applied", closed(3, "generation 1 was applied last"))
			v.size(1)
			v.condition("Applied", fmt.Sprintf(allApplied, 4))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				v.version(test.handlers...)
				v.Settle()
				v.size(2)
				v.Settle()
				test.play(v)
			})
		})
	}
}

// TestAnOwnerThatIsDeletedWhileAWhenIsFalse holds that it goes, and its children with it, however they are tied.
func TestAnOwnerThatIsDeletedWhileAWhenIsFalse(t *testing.T) {
	for _, head := range []string{`{id: app, ` + small + `, `, `{id: app, steps: [{name: one, ` + small + `, `} {
		for _, restarts := range []bool{false, true} {
			gated(t, func(v *versions) {
				handler := head + `apply: {` + template("a") + ", " + template("b", "ownership: labelled") + ", " + template("c", "onDelete: orphan") + `}}`
				step := ""
				if strings.Contains(head, "steps") {
					handler, step = handler+"]}", ".one"
				}
				v.version(handler)
				v.Settle()
				v.size(2)
				v.Settle()
				if len(v.List(configMaps, "default")) != 3 {
					t.Fatal("children are gone before their owner is")
				}
				if restarts {
					v.Process.Restart()
				}
				v.remove()
				v.Advance(time.Minute)
				if v.web() != nil {
					t.Errorf("the owner is there still: %v", v.web().GetFinalizers())
				}
				v.has("ConfigMap a of app"+step+"/a", "ConfigMap c of ") // an owned one is the garbage collector's
			})
		}
	}
}

// TestANewObjectWhoseWhenIsFalse holds what is said of an object of which nothing was applied yet, and of a handler that
// waits for something before.
func TestANewObjectWhoseWhenIsFalse(t *testing.T) {
	gated(t, func(v *versions) {
		v.version(applies("app, when: self.spec.size > 1", template("a")))
		v.condition("Applied", closed(1, "nothing is applied yet"))
		v.has()
		v.size(2)
		v.condition("Applied", fmt.Sprintf(allApplied, 2))
	})
	gated(t, func(v *versions) {
		v.version(applies("app, "+small, template("a", "readyWhen: self.spec.size > 1")))
		v.condition("Applied", "False@1 Waiting: Waiting for ConfigMap default/a to be ready.")
		v.size(2)
		v.condition("Applied", closed(2, "generation 1 is not applied as a whole"))
	})
}

// TestAppliedSumsUpWhatHandlersOfOnePassSay holds that what the last of several handlers says is in Applied, too.
func TestAppliedSumsUpWhatHandlersOfOnePassSay(t *testing.T) {
	gated(t, func(v *versions) {
		v.version(applies("one", template("a")), applies("two, when: self.spec.size > 1", template("b")), applies("three", template("c", "readyWhen: self.spec.size > 2")))
		v.condition("Applied", "False@1 Waiting: two: "+thePlace+"; nothing is applied yet; three: Waiting for ConfigMap default/c to be ready.")
		v.Forget()
		v.size(2)
		v.condition("Applied", "False@2 Waiting: three: Waiting for ConfigMap default/c to be ready.")
		v.size(3)
		v.condition("Applied", "True@3 AllApplied: All children are applied.")
	})
	gated(t, func(v *versions) {
		v.version(applies("one", template("a")), applies("two, when: self.spec.size > 1", template("b")))
		v.condition("Applied", "Unknown@1 Filtered: two: "+thePlace+"; nothing is applied yet.")
	})
}

// TestAFilteredConditionOutlivesAConflict holds that a write which is worked out once more after a conflict has the condition of a
// handler whose when is false, as the first one had: no pass is needed to say it later.
func TestAFilteredConditionOutlivesAConflict(t *testing.T) {
	gated(t, func(v *versions) {
		app, met := applies("app, "+small, template("a")), false
		v.version(app)
		v.condition("Applied", fmt.Sprintf(allApplied, 1))
		v.calls(map[string]dsl.Func{"meet": func(_ ctx, r *dsl.Request) error {
			if sizeOf(r.Object) == 2 && !met {
				met = true
				v.set("green", "metadata", "labels", "theirs")
			}
			r.Patch.SetStatus("seen", sizeOf(r.Object))
			return nil
		}}, app, `{id: meet, causes: [reconcile], field: spec.size, call: meet}`)
		v.Settle()
		v.Forget()
		v.size(2)
		v.condition("Applied", closed(2, "generation 1 was applied last"))
		if got := value(v.web(), "status.seen"); !met || got != int64(2) {
			t.Errorf("somebody wrote meanwhile: %t; status.seen is %v", met, got)
		}
		v.Wrote(sayIt+": 409", sayIt)
	})
}

// TestAFilterInGoLeavesChildrenAsTheyAre holds the same for a handler in Go.
func TestAFilterInGoLeavesChildrenAsTheyAre(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
		foo.Owns(configMaps)
		foo.OnReconcile("app", makesB, dsl.Makes("app"), dsl.When(func(s *dsl.Subject) (bool, error) {
			return s.Object.GetLabels()["off"] == "", nil
		}))
	}, func(s *stage) {
		s.begin()
		s.set("yes", "metadata", "labels", "off")
		s.Advance(time.Hour)
		s.Process.Restart()
		s.Advance(time.Hour)
		if s.Get(configMaps, "default", "b") == nil {
			s.t.Error("the child is gone")
		}
	}})
}
