// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestChildrenGoWhenTheirFilterHoldsNoMore holds that children of a handler are taken away when labels keep it from their
// owner, and made again when these match.
func TestChildrenGoWhenTheirFilterHoldsNoMore(t *testing.T) {
	child := func(name string, more string) string {
		return `apply: {` + name + `: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}` + more + `}}`
	}
	small := func(id, more string) string {
		return `{id: ` + id + `, labels: {off: {exists: false}}, ` + child("a", more) + `}`
	}
	tests := map[string]struct {
		handlers []string
		then     []string
		wrote    []string
	}{
		"what is owned goes":      {[]string{small("app", "")}, nil, []string{"delete configmaps default/a"}},
		"what is orphaned stays":  {[]string{small("app", ", onDelete: orphan")}, []string{"ConfigMap a of "}, []string{"patch configmaps default/a", "patch foos default/web"}},
		"what is retained stays":  {[]string{small("app", ", onDelete: retain")}, []string{"ConfigMap a of app/a;retain"}, nil},
		"what is not owned stays": {[]string{small("app", ", ownership: none")}, []string{"ConfigMap a of app/a"}, nil},
		"another handler takes it over": {[]string{small("app", ""), `{id: big, labels: {off: {exists: true}}, apply: {big: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`},
			[]string{"ConfigMap a of big/big"}, []string{"patch configmaps default/a"}},
		"it is about changes": {[]string{`{id: app, causes: [create], labels: {off: {exists: false}}, ` + child("a", "") + `}`}, []string{"ConfigMap a of app/a"}, nil},
		"of steps": {[]string{`{id: app, labels: {off: {exists: false}}, steps: [{name: one, ` + child("a", "") + `}, {name: two, ` + child("b", "") + `}]}`},
			nil, []string{"delete configmaps default/a", "delete configmaps default/b"}},
		"an annotation":         {[]string{`{id: app, annotations: {off: {exists: false}}, ` + child("a", "") + `}`}, nil, []string{"delete configmaps default/a"}},
		"another handler fails": {[]string{small("app", ""), `{id: bad, set: {status: {x: "${string(1 / (1 - size(self.metadata.?labels.orValue({}))))}"}}}`}, []string{"ConfigMap a of app/a"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(test.handlers...)
				v.Settle()
				before := v.List(scene.ConfigMaps, "default")
				v.Forget()
				off := map[string]string{"off": "yes"}
				v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(off); o.SetAnnotations(merged(o, off)) })
				v.Advance(5 * time.Second) // who takes something over asks first
				v.WantChildren(test.then...)
				v.Wrote(test.wrote...)
				v.Process.Restart()
				v.WantChildren(test.then...)
				v.Wrote()
				v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
					o.SetLabels(nil)
					unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "off")
				})
				v.Advance(time.Minute)
				if after := v.List(scene.ConfigMaps, "default"); len(after) != len(before) {
					t.Errorf("when it holds again there are %d children, want %d", len(after), len(before))
				}
			})
		})
	}
}

// merged are annotations of an object with more.
func merged(o *unstructured.Unstructured, more map[string]string) map[string]string {
	out := maps.Clone(more)
	maps.Copy(out, o.GetAnnotations())
	return out
}

// TestChildrenGoAfterARestartWhenTheirFilterHoldsNoMore holds that children are taken away whose filter ceased to
// hold while no process ran, and that it costs nothing where there are none.
func TestChildrenGoAfterARestartWhenTheirFilterHoldsNoMore(t *testing.T) {
	const app = `{id: app, labels: {off: {exists: false}}, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(app)
		v.WantChildren("ConfigMap a of app/a")
		if err := v.Process.Stop(); err != nil {
			t.Error(err)
		}
		v.Set("yes", "metadata", "labels", "off")
		v.Next(app)
		v.WantChildren()
		v.Wrote("delete configmaps default/a")
		v.Process.Restart()
		v.Wrote()
	})
}
