// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestIncludeWhenOfAHandler holds that all children of a handler go, as their policy says, while its includeWhen is false, and
// are made again when it is true.
func TestIncludeWhenOfAHandler(t *testing.T) {
	const include = "app, includeWhen: self.spec.size < 2"
	tests := map[string]struct {
		handlers []string
		// before are the children, after those that are left, again those when it is true again.
		before, after, again []string
	}{
		"of children of all kinds": {
			[]string{applies(include, template("a"), template("b", "ownership: labelled"), template("c", "onDelete: orphan"), template("d", "onDelete: retain"), template("e", "ownership: none"))},
			[]string{"ConfigMap a of app/a", "ConfigMap b of app/b", "ConfigMap c of app/c;orphan", "ConfigMap d of app/d;retain", "ConfigMap e of app/e"},
			[]string{"ConfigMap c of ", "ConfigMap d of app/d;retain", "ConfigMap e of app/e"},
			nil, // the orphan is nobody's from then on
		},
		"beside an includeWhen of a child": {
			[]string{applies(include, template("a", "includeWhen: self.spec.size < 1"), template("b", "includeWhen: self.spec.size > 0"))},
			[]string{"ConfigMap b of app/b"}, nil, []string{"ConfigMap b of app/b"},
		},
		"of a handler with steps": {
			[]string{`{id: app, includeWhen: self.spec.size < 2, steps: [{log: {message: hello}}, {name: one, apply: {` + template("a") + `}}, {name: two, apply: {` + template("b") + `}}]}`},
			[]string{"ConfigMap a of app.one/a", "ConfigMap b of app.two/b"}, nil, []string{"ConfigMap a of app.one/a", "ConfigMap b of app.two/b"},
		},
		"of a handler with forEach": {
			[]string{`{id: app, forEach: "${[1, 2]}", key: "${string(item)}", includeWhen: self.spec.size < item, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: "a${string(item)}"}}}}`},
			[]string{"ConfigMap a2 of app/a/2"}, nil, []string{"ConfigMap a2 of app/a/2"},
		},
		"that reads the status": {
			[]string{`{id: tells, set: {status: {small: "${self.spec.size < 2}"}}}`, applies("app, includeWhen: self.status.small", template("a"))},
			[]string{"ConfigMap a of app/a"}, nil, []string{"ConfigMap a of app/a"},
		},
		"that reads another handler's child": {
			[]string{applies("first", template("b", "includeWhen: self.spec.size < 2")), applies("app, includeWhen: has(children.b.metadata)", template("a"))},
			[]string{"ConfigMap a of app/a", "ConfigMap b of first/b"}, nil, []string{"ConfigMap a of app/a", "ConfigMap b of first/b"},
		},
		"with parameters": {
			[]string{applies("app, includeWhen: self.spec.size < params.most, with: {most: 2}", template("a"))},
			[]string{"ConfigMap a of app/a"}, nil, []string{"ConfigMap a of app/a"},
		},
		"while another handler makes the child": {
			[]string{applies(include, template("a")), applies("big, includeWhen: self.spec.size > 1", template("a2")), applies("also, includeWhen: self.spec.size > 1", template("b"))},
			[]string{"ConfigMap a of app/a"}, []string{"ConfigMap a2 of big/a2", "ConfigMap b of also/b"}, []string{"ConfigMap a of app/a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				v.version(test.handlers...)
				v.has(test.before...)
				v.size(2)
				v.Advance(time.Minute)
				v.has(test.after...)
				v.Forget()
				v.Process.Restart()
				v.Advance(time.Hour)
				v.Wrote()
				v.has(test.after...)
				v.size(1)
				v.Advance(time.Minute)
				if test.again != nil {
					v.has(test.again...)
				}
			})
		})
	}
}

// TestIncludeWhenThatReadsARelatedObject holds that children come and go with it, and that one that cannot be read yet
// takes nothing away.
func TestIncludeWhenThatReadsARelatedObject(t *testing.T) {
	gated(t, func(v *versions) {
		v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x}, spec: {open: true}}`)
		of := `{resource: foos.v1.example.com, related: [{name: bar, resource: bars.v1.example.org, namespace: default, object: x}],
			handlers: [` + applies("app, includeWhen: related.bar.spec.open", template("a")) + `]}`
		v.resources(of)
		v.has("Bar x of ", "ConfigMap a of app/a")
		v.Delete(bars, "default", "x")
		v.Advance(time.Minute)
		v.has("ConfigMap a of app/a")
		v.condition("Applied", "False@1 Waiting: Waiting for Bar default/x (child a takes from it).")
		v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x}, spec: {open: false}}`)
		v.Advance(time.Minute)
		v.has("Bar x of ")
		v.condition("Applied", "True@1 AllApplied: There is nothing to apply.")
		v.Update(bars, "default", "x", func(o *unstructured.Unstructured) { v.setField(o, true, "spec", "open") })
		v.has("Bar x of ", "ConfigMap a of app/a")
	})
}

// TestWhenAndIncludeWhen holds that a handler that may not act takes nothing away, also when the children are not wanted.
func TestWhenAndIncludeWhen(t *testing.T) {
	gated(t, func(v *versions) {
		v.version(applies(`app, when: self.spec.color == 'red', includeWhen: self.spec.size < 2`, template("a")))
		v.has("ConfigMap a of app/a")
		v.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
			v.setField(o, "blue", "spec", "color")
			v.setField(o, int64(2), "spec", "size")
		})
		v.Advance(time.Minute)
		v.has("ConfigMap a of app/a")
		v.condition("Applied", closed(2, "generation 1 was applied last"))
		v.set("red", "spec", "color")
		v.has()
		v.condition("Applied", "True@3 AllApplied: There is nothing to apply.")
		v.set("blue", "spec", "color")
		v.size(1)
		v.Settle()
		v.has()
		v.set("red", "spec", "color")
		v.has("ConfigMap a of app/a")
		v.condition("Applied", fmt.Sprintf(allApplied, 6))
	})
}
