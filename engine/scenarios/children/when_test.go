// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const small = "when: self.spec.size < 2"

const thePlace = "The when at operator.yaml:1 is false, so the children stay as they are"

const allApplied = "True@%d AllApplied: The child is applied."

const sayIt = "patch foos/status default/web"

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
		"of an owned child":             {handlers: scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a"))},
		"of a labelled child":           {handlers: scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a", "ownership: labelled"))},
		"of a child that is orphaned":   {handlers: scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a", "onDelete: orphan"))},
		"of a child that is retained":   {handlers: scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a", "onDelete: retain"))},
		"of a child without ownership":  {handlers: scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a", "ownership: none"))},
		"that reads the cause, too":     {handlers: scene.AppliesTemplates("app, when: \"cause != 'delete' && self.spec.size < 2\"", scene.ConfigMapTemplate("a"))},
		"that reads children":           {handlers: scene.AppliesTemplates("app, when: 'self.spec.size < 2 || !has(children.a)'", scene.ConfigMapTemplate("a"))},
		"of a step":                     {handlers: `{id: app, steps: [{name: one, ` + small + `, apply: {` + scene.ConfigMapTemplate("a") + `}}]}`},
		"of a handler with steps":       {handlers: `{id: app, ` + small + `, steps: [{name: one, apply: {` + scene.ConfigMapTemplate("a") + `}}]}`},
		"of a handler with forEach":     {handlers: each(small+", ", scene.ConfigMapTemplate("a")), silent: true},
		"of a step of one with forEach": {handlers: `{id: app, forEach: "${[1]}", key: "${string(item)}", steps: [{name: one, when: self.spec.size < 1 + item, apply: {` + scene.ConfigMapTemplate("a") + `}}]}`, silent: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				expect := func(condition string, writes ...string) {
					t.Helper()
					if !test.silent {
						v.WantCondition("Applied", condition)
						v.Wrote(writes...)
						return
					}
					v.Settle()
					v.Wrote()
				}
				v.Next(test.handlers)
				v.Settle()
				made := v.Get(scene.ConfigMaps, "default", "a")
				v.Forget()
				v.Resize(2)
				expect(closed(2, "generation 1 was applied last"), sayIt)
				if now := v.Get(scene.ConfigMaps, "default", "a"); now == nil || now.GetResourceVersion() != made.GetResourceVersion() {
					t.Fatalf("the child was touched: %v", now)
				}
				v.SpoilConfigMap("c")
				v.Advance(time.Hour)
				v.Process.Restart()
				v.Advance(time.Hour)
				if got := scene.ValueAt(v.Get(scene.ConfigMaps, "default", "a"), "data.a"); got != "c" {
					t.Errorf("what somebody changed is put back: %v", got)
				}
				v.Wrote()
				v.Delete(scene.ConfigMaps, "default", "a")
				v.Advance(time.Minute)
				v.Forget() // what is tied by a label is taken off the owner's inventory
				v.Advance(time.Hour)
				v.WantChildren()
				v.Wrote()
				v.Resize(3)
				expect(closed(3, "generation 1 was applied last"), sayIt)
				v.Resize(1)
				v.Advance(time.Minute)
				v.WantChildren(strings.TrimSpace("ConfigMap a of " + made.GetAnnotations()["op.handwerk.dev/child"]))
				if !test.silent {
					v.WantCondition("Applied", fmt.Sprintf(allApplied, 4))
				}
			})
		})
	}
}

// TestAFalseWhenKeepsChildrenThroughOtherVersions holds what becomes of children whose handler may not act.
func TestAFalseWhenKeepsChildrenThroughOtherVersions(t *testing.T) {
	app := scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a"))
	tests := map[string]struct {
		handlers []string
		play     func(v *scene.Versions)
	}{
		"the handler has another id": {[]string{app}, func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("other, was: app, "+small, scene.ConfigMapTemplate("a")))
			v.Settle()
			v.Wrote()
			v.WantChildren("ConfigMap a of app/a")
			v.Resize(1)
			v.Settle()
			v.WantChildren("ConfigMap a of other/a")
		}},
		"the handler has another id, and a condition of its own": {[]string{app, scene.AppliesTemplates("two", scene.ConfigMapTemplate("b"))}, func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("other, was: app, "+small, scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("b")))
			v.WantCondition("OtherApplied", closed(2, ""))
			v.WantChildren("ConfigMap a of app/a", "ConfigMap b of two/b")
		}},
		"an earlier version without the filter is back": {[]string{app}, func(v *scene.Versions) {
			v.SpoilConfigMap("c")
			v.Next(scene.AppliesTemplates("app", scene.ConfigMapTemplate("a")))
			v.WantCondition("Applied", fmt.Sprintf(allApplied, 2))
			if got := scene.ValueAt(v.Get(scene.ConfigMaps, "default", "a"), "data.a"); got != "b" {
				v.T.Errorf("data.a is %v", got)
			}
		}},
		"an earlier version with another child is back": {[]string{app}, func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("b")))
			v.Settle()
			v.WantChildren("ConfigMap a of app/a")
			v.Resize(1)
			v.Settle()
			v.WantChildren("ConfigMap b of app/b")
		}},
		"the handler goes": {[]string{app}, func(v *scene.Versions) {
			v.Next(scene.LabelsSeen)
			v.Settle()
			v.WantChildren()
		}},
		"another handler makes the child": {[]string{app, `{id: big, when: self.spec.size > 1, apply: {big: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}}}`}, func(v *scene.Versions) {
			v.Advance(5 * time.Second) // it asks the other one first
			v.WantChildren("ConfigMap a of big/big")
			v.WantCondition("BigApplied", fmt.Sprintf(allApplied, 2))
			v.WantCondition("AppApplied", closed(2, "generation 1 was applied last"))
			v.WantCondition("Applied", "Unknown@2 Filtered: app: "+thePlace+"; generation 1 was applied last.")
			v.Resize(1)
			v.Advance(5 * time.Second)
			v.WantChildren("ConfigMap a of app/a")
			v.WantCondition("BigApplied", closed(3, "generation 2 was applied last"))
		}},
		"what comes after it is done": {[]string{app, scene.AppliesTemplates("next, after: [app]", scene.ConfigMapTemplate("b"))}, func(v *scene.Versions) {
			v.Set("blue", "spec", "color")
			v.Delete(scene.ConfigMaps, "default", "b")
			v.Settle()
			v.WantChildren("ConfigMap a of app/a", "ConfigMap b of next/b")
		}},
		"a label keeps the handler from the object, too": {[]string{scene.AppliesTemplates("app, "+small+", labels: {off: {exists: false}}", scene.ConfigMapTemplate("a"))}, func(v *scene.Versions) {
			v.Set("yes", "metadata", "labels", "off")
			v.Settle()
			v.WantChildren()
		}},
		"events that change nothing": {[]string{app}, func(v *scene.Versions) {
			v.Forget()
			for i := range 20 {
				v.Set(fmt.Sprint(i), "metadata", "annotations", "example.com/note")
				v.SpoilConfigMap(fmt.Sprint(i))
			}
			v.Advance(time.Hour)
			v.Wrote()
		}},
		"it fails": {[]string{scene.AppliesTemplates("app, when: '1 / (2 - self.spec.size) > 0'", scene.ConfigMapTemplate("a"))}, func(v *scene.Versions) {
			v.SpoilConfigMap("c")
			v.Advance(time.Hour)
			v.Process.Restart()
			v.Advance(time.Hour)
			v.WantChildren("ConfigMap a of app/a")
			v.Resize(0) // it is false
			v.WantCondition("Applied", closed(3, "generation 1 was applied last"))
			v.Resize(1)
			v.WantCondition("Applied", fmt.Sprintf(allApplied, 4))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				v.Next(test.handlers...)
				v.Settle()
				v.Resize(2)
				v.Settle()
				test.play(v)
			})
		})
	}
}

// TestAnOwnerGoesWithItsChildrenWhileAWhenIsFalse holds that it goes, and its children with it, however they are tied.
func TestAnOwnerGoesWithItsChildrenWhileAWhenIsFalse(t *testing.T) {
	for _, head := range []string{`{id: app, ` + small + `, `, `{id: app, steps: [{name: one, ` + small + `, `} {
		for _, restarts := range []bool{false, true} {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				handler := head + `apply: {` + scene.ConfigMapTemplate("a") + ", " + scene.ConfigMapTemplate("b", "ownership: labelled") + ", " + scene.ConfigMapTemplate("c", "onDelete: orphan") + `}}`
				step := ""
				if strings.Contains(head, "steps") {
					handler, step = handler+"]}", ".one"
				}
				v.Next(handler)
				v.Settle()
				v.Resize(2)
				v.Settle()
				if len(v.List(scene.ConfigMaps, "default")) != 3 {
					t.Fatal("children are gone before their owner is")
				}
				if restarts {
					v.Process.Restart()
				}
				v.Remove()
				v.Advance(time.Minute)
				if v.Web() != nil {
					t.Errorf("the owner is there still: %v", v.Web().GetFinalizers())
				}
				v.WantChildren("ConfigMap a of app"+step+"/a", "ConfigMap c of ") // an owned one is the garbage collector's
			})
		}
	}
}

// TestANewObjectSaysThatItsWhenIsFalse holds the condition of an object without applied children, and of a handler that
// waits for something before.
func TestANewObjectSaysThatItsWhenIsFalse(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesTemplates("app, when: self.spec.size > 1", scene.ConfigMapTemplate("a")))
		v.WantCondition("Applied", closed(1, "nothing is applied yet"))
		v.WantChildren()
		v.Resize(2)
		v.WantCondition("Applied", fmt.Sprintf(allApplied, 2))
	})
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a", "readyWhen: self.spec.size > 1")))
		v.WantCondition("Applied", "False@1 Waiting: Waiting for ConfigMap default/a to be ready.")
		v.Resize(2)
		v.WantCondition("Applied", closed(2, "generation 1 is not applied as a whole"))
	})
}

// TestAppliedSumsUpWhatHandlersOfOnePassSay holds that what the last of several handlers says is in Applied, too.
func TestAppliedSumsUpWhatHandlersOfOnePassSay(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, when: self.spec.size > 1", scene.ConfigMapTemplate("b")), scene.AppliesTemplates("three", scene.ConfigMapTemplate("c", "readyWhen: self.spec.size > 2")))
		v.WantCondition("Applied", "False@1 Waiting: two: "+thePlace+"; nothing is applied yet; three: Waiting for ConfigMap default/c to be ready.")
		v.Forget()
		v.Resize(2)
		v.WantCondition("Applied", "False@2 Waiting: three: Waiting for ConfigMap default/c to be ready.")
		v.Resize(3)
		v.WantCondition("Applied", "True@3 AllApplied: All children are applied.")
	})
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, when: self.spec.size > 1", scene.ConfigMapTemplate("b")))
		v.WantCondition("Applied", "Unknown@1 Filtered: two: "+thePlace+"; nothing is applied yet.")
	})
}

// TestAFilteredConditionOutlivesAConflict holds that a write which is worked out once more after a conflict has the
// condition of a handler whose when is false, as the first one had: no reconcile is needed to say it later.
func TestAFilteredConditionOutlivesAConflict(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		app, met := scene.AppliesTemplates("app, "+small, scene.ConfigMapTemplate("a")), false
		v.Next(app)
		v.WantCondition("Applied", fmt.Sprintf(allApplied, 1))
		v.NextInGo(map[string]dsl.Func{"meet": func(_ context.Context, r *dsl.Request) error {
			if scene.SizeOf(r.Object) == 2 && !met {
				met = true
				v.Set("green", "metadata", "labels", "theirs")
			}
			r.Patch.SetStatus("seen", scene.SizeOf(r.Object))
			return nil
		}}, app, `{id: meet, causes: [reconcile], field: spec.size, call: meet}`)
		v.Settle()
		v.Forget()
		v.Resize(2)
		v.WantCondition("Applied", closed(2, "generation 1 was applied last"))
		if got := scene.ValueAt(v.Web(), "status.seen"); !met || got != int64(2) {
			t.Errorf("somebody wrote meanwhile: %t; status.seen is %v", met, got)
		}
		v.Wrote(sayIt+": 409", sayIt)
	})
}

// TestAFilterInGoLeavesChildrenAsTheyAre holds the same for a handler in Go.
func TestAFilterInGoLeavesChildrenAsTheyAre(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("app", scene.MakesConfigMapB, dsl.Makes("app"), dsl.When(func(s *dsl.Subject) (bool, error) {
			return s.Object.GetLabels()["off"] == "", nil
		}))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Set("yes", "metadata", "labels", "off")
		s.Advance(time.Hour)
		s.Process.Restart()
		s.Advance(time.Hour)
		if s.Get(scene.ConfigMaps, "default", "b") == nil {
			s.T.Error("the child is gone")
		}
	}})
}
