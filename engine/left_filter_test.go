// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAFilterThatHoldsNoMore holds that children of a handler that does not see their owner any more are taken away, and
// made again when it does.
func TestAFilterThatHoldsNoMore(t *testing.T) {
	child := func(name string, more string) string {
		return `apply: {` + name + `: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}` + more + `}}`
	}
	small := func(id, more string) string {
		return `{id: ` + id + `, when: self.spec.size < 2, ` + child("a", more) + `}`
	}
	tests := map[string]struct {
		handlers []string
		change   func(v *versions)
		then     []string
		wrote    []string
	}{
		"its when does not hold":  {[]string{small("app", "")}, nil, nil, []string{"delete configmaps default/a"}},
		"what is orphaned stays":  {[]string{small("app", ", onDelete: orphan")}, nil, []string{"ConfigMap a of "}, []string{"patch configmaps default/a", "patch foos default/web"}},
		"what is retained stays":  {[]string{small("app", ", onDelete: retain")}, nil, []string{"ConfigMap a of app/a;retain"}, nil},
		"what is not owned stays": {[]string{small("app", ", ownership: none")}, nil, []string{"ConfigMap a of app/a"}, nil},
		"another handler takes it over": {[]string{small("app", ""), `{id: big, when: self.spec.size > 1, apply: {big: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`},
			nil, []string{"ConfigMap a of big/big"}, []string{"patch configmaps default/a"}},
		"its when cannot be asked":    {[]string{`{id: app, when: 1 / (2 - self.spec.size) > 0, ` + child("a", "") + `}`}, nil, []string{"ConfigMap a of app/a"}, nil},
		"its when is about the cause": {[]string{`{id: app, when: "cause == 'create' || self.spec.size < 2 && cause == 'resume'", ` + child("a", "") + `}`}, nil, []string{"ConfigMap a of app/a"}, nil},
		"it is about changes":         {[]string{`{id: app, causes: [create], when: self.spec.size < 2, ` + child("a", "") + `}`}, nil, []string{"ConfigMap a of app/a"}, nil},
		"a label is not there": {[]string{`{id: app, labels: {off: {exists: false}}, ` + child("a", "") + `}`},
			func(v *versions) { v.set("yes", "metadata", "labels", "off") }, nil, []string{"delete configmaps default/a"}},
		"a step is left out": {[]string{`{id: app, steps: [{name: one, when: self.spec.size < 2, ` + child("a", "") + `}, {name: two, ` + child("b", "") + `}]}`},
			nil, []string{"ConfigMap b of app.two/b"}, []string{"delete configmaps default/a"}},
		"another handler fails": {[]string{small("app", ""), `{id: bad, set: {labels: {x: "${string(1 / (2 - self.spec.size))}"}}}`}, nil, []string{"ConfigMap a of app/a"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(test.handlers...)
				v.Settle()
				before := v.List(configMaps, "default")
				v.Forget()
				if test.change == nil {
					test.change = func(v *versions) { v.size(2) }
				}
				test.change(v)
				v.Advance(5 * time.Second) // who takes something over asks first
				v.has(test.then...)
				v.Wrote(test.wrote...)
				v.Process.Restart()
				v.has(test.then...)
				v.Wrote()
				v.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
					o.SetLabels(nil)
					v.setField(o, int64(1), "spec", "size")
				})
				v.Advance(time.Minute)
				if after := v.List(configMaps, "default"); len(after) != len(before) {
					t.Errorf("when it holds again there are %d children, want %d", len(after), len(before))
				}
			})
		})
	}
}

// TestAFilterThatDoesNotHoldAtTheStart holds that children are taken away of which the filter ceased to hold while no
// process ran, and that it costs nothing where there are none.
func TestAFilterThatDoesNotHoldAtTheStart(t *testing.T) {
	const app = `{id: app, when: self.spec.size < 2, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`
	follow(t, func(v *versions) {
		v.version(app)
		v.has("ConfigMap a of app/a")
		if err := v.Process.Stop(); err != nil {
			t.Error(err)
		}
		v.size(2)
		v.version(app)
		v.has()
		v.Wrote("delete configmaps default/a")
		v.Process.Restart()
		v.Wrote()
	})
}
