// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestIncludeWhenOfAHandlerDecidesOnAllItsChildren holds that all children of a handler go, as their policy says, while its
// includeWhen is false, and are made again when it is true.
func TestIncludeWhenOfAHandlerDecidesOnAllItsChildren(t *testing.T) {
	const include = "app, includeWhen: self.spec.size < 2"
	tests := map[string]struct {
		handlers []string
		// before are the children, after those that are left, again those when it is true again.
		before, after, again []string
	}{
		"of children of all kinds": {
			[]string{scene.AppliesTemplates(include, scene.ConfigMapTemplate("a"), scene.ConfigMapTemplate("b", "ownership: labelled"), scene.ConfigMapTemplate("c", "onDelete: orphan"), scene.ConfigMapTemplate("d", "onDelete: retain"), scene.ConfigMapTemplate("e", "ownership: none"))},
			[]string{"ConfigMap a of app/a", "ConfigMap b of app/b", "ConfigMap c of app/c;orphan", "ConfigMap d of app/d;retain", "ConfigMap e of app/e"},
			[]string{"ConfigMap c of ", "ConfigMap d of app/d;retain", "ConfigMap e of app/e"},
			nil, // the orphan has no owner from then on
		},
		"beside an includeWhen of a child": {
			[]string{scene.AppliesTemplates(include, scene.ConfigMapTemplate("a", "includeWhen: self.spec.size < 1"), scene.ConfigMapTemplate("b", "includeWhen: self.spec.size > 0"))},
			[]string{"ConfigMap b of app/b"}, nil, []string{"ConfigMap b of app/b"},
		},
		"of a handler with steps": {
			[]string{`{id: app, includeWhen: self.spec.size < 2, steps: [{log: {message: hello}}, {name: one, apply: {` + scene.ConfigMapTemplate("a") + `}}, {name: two, apply: {` + scene.ConfigMapTemplate("b") + `}}]}`},
			[]string{"ConfigMap a of app.one/a", "ConfigMap b of app.two/b"}, nil, []string{"ConfigMap a of app.one/a", "ConfigMap b of app.two/b"},
		},
		"of a handler with forEach": {
			[]string{`{id: app, forEach: "${[1, 2]}", key: "${string(item)}", includeWhen: self.spec.size < item, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: "a${string(item)}"}}}}`},
			[]string{"ConfigMap a2 of app/a/2"}, nil, []string{"ConfigMap a2 of app/a/2"},
		},
		"that reads the status": {
			[]string{`{id: report, set: {status: {small: "${self.spec.size < 2}"}}}`, scene.AppliesTemplates("app, includeWhen: self.status.small", scene.ConfigMapTemplate("a"))},
			[]string{"ConfigMap a of app/a"}, nil, []string{"ConfigMap a of app/a"},
		},
		"that reads another handler's child": {
			[]string{scene.AppliesTemplates("first", scene.ConfigMapTemplate("b", "includeWhen: self.spec.size < 2")), scene.AppliesTemplates("app, includeWhen: has(children.b.metadata)", scene.ConfigMapTemplate("a"))},
			[]string{"ConfigMap a of app/a", "ConfigMap b of first/b"}, nil, []string{"ConfigMap a of app/a", "ConfigMap b of first/b"},
		},
		"with parameters": {
			[]string{scene.AppliesTemplates("app, includeWhen: self.spec.size < params.most, with: {most: 2}", scene.ConfigMapTemplate("a"))},
			[]string{"ConfigMap a of app/a"}, nil, []string{"ConfigMap a of app/a"},
		},
		"while another handler makes the child": {
			[]string{scene.AppliesTemplates(include, scene.ConfigMapTemplate("a")), scene.AppliesTemplates("big, includeWhen: self.spec.size > 1", scene.ConfigMapTemplate("a2")), scene.AppliesTemplates("also, includeWhen: self.spec.size > 1", scene.ConfigMapTemplate("b"))},
			[]string{"ConfigMap a of app/a"}, []string{"ConfigMap a2 of big/a2", "ConfigMap b of also/b"}, []string{"ConfigMap a of app/a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				v.Next(test.handlers...)
				v.WantChildren(test.before...)
				v.Resize(2)
				v.Advance(time.Minute)
				v.WantChildren(test.after...)
				v.Forget()
				v.Process.Restart()
				v.Advance(time.Hour)
				v.Wrote()
				v.WantChildren(test.after...)
				v.Resize(1)
				v.Advance(time.Minute)
				if test.again != nil {
					v.WantChildren(test.again...)
				}
			})
		})
	}
}

// TestIncludeWhenMayReadARelatedObject holds that children come and go with it, and that one that cannot be read yet
// takes nothing away.
func TestIncludeWhenMayReadARelatedObject(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x}, spec: {open: true}}`)
		of := `{resource: foos.v1.example.com, related: [{name: bar, resource: bars.v1.example.org, namespace: default, object: x}],
			handlers: [` + scene.AppliesTemplates("app, includeWhen: related.bar.spec.open", scene.ConfigMapTemplate("a")) + `]}`
		v.NextResources(of)
		v.WantChildren("Bar x of ", "ConfigMap a of app/a")
		v.Delete(scene.Bars, "default", "x")
		v.Advance(time.Minute)
		v.WantChildren("ConfigMap a of app/a")
		v.WantCondition("Applied", "False@1 Waiting: Waiting for Bar default/x to exist (needed by child a).")
		v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x}, spec: {open: false}}`)
		v.Advance(time.Minute)
		v.WantChildren("Bar x of ")
		v.WantCondition("Applied", "True@1 AllApplied: There is nothing to apply.")
		v.Update(scene.Bars, "default", "x", scene.SetField(true, "spec", "open"))
		v.WantChildren("Bar x of ", "ConfigMap a of app/a")
	})
}

// TestAFalseWhenKeepsChildrenThatIncludeWhenDoesNotWant holds that a handler that may not act takes nothing away, also when
// the children are not wanted.
func TestAFalseWhenKeepsChildrenThatIncludeWhenDoesNotWant(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesTemplates(`app, when: self.spec.color == 'red', includeWhen: self.spec.size < 2`, scene.ConfigMapTemplate("a")))
		v.WantChildren("ConfigMap a of app/a")
		v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			scene.SetField("blue", "spec", "color")(o)
			scene.SetField(int64(2), "spec", "size")(o)
		})
		v.Advance(time.Minute)
		v.WantChildren("ConfigMap a of app/a")
		v.WantCondition("Applied", closed(2, "generation 1 was applied last"))
		v.Set("red", "spec", "color")
		v.WantChildren()
		v.WantCondition("Applied", "True@3 AllApplied: There is nothing to apply.")
		v.Set("blue", "spec", "color")
		v.Resize(1)
		v.Settle()
		v.WantChildren()
		v.Set("red", "spec", "color")
		v.WantChildren("ConfigMap a of app/a")
		v.WantCondition("Applied", fmt.Sprintf(allApplied, 6))
	})
}
