// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAChildMovesToAHandlerOfAnotherVersionWithoutADeletion holds that a child which another handler of the next version
// wants is not taken away before: it is the same object afterwards, whatever keeps the handler from running at once.
func TestAChildMovesToAHandlerOfAnotherVersionWithoutADeletion(t *testing.T) {
	const there = "ConfigMap b of two/b"
	same := func(v *scene.Versions, uid types.UID) {
		v.T.Helper()
		if o := v.Get(scene.ConfigMaps, "default", "b"); o == nil || o.GetUID() != uid || o.GetDeletionTimestamp() != nil {
			v.T.Error("the child was taken away")
		}
	}
	tests := map[string]struct {
		// options are those of the child.
		options []string
		// next starts the next version, and moves on until the child has moved. Between, the child must be there.
		next func(v *scene.Versions, between func(), options ...string)
		// child is how it is found at last, by default that of handler two.
		child string
	}{
		"the handler that had it is before the one that gets it": {nil, func(v *scene.Versions, _ func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("b", options...)))
		}, there},
		"the handler that had it is behind": {nil, func(v *scene.Versions, _ func(), options ...string) {
			v.Next(scene.AppliesTemplates("two", scene.ConfigMapTemplate("b", options...)), scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")))
		}, there},
		"a labelled child": {[]string{"ownership: labelled"}, func(v *scene.Versions, _ func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("b", options...)))
		}, there},
		"a child that would be cut loose": {[]string{"onDelete: orphan"}, func(v *scene.Versions, _ func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("b", options...)))
		}, there + ";orphan"},
		"the handler that gets it comes after the one that had it": {nil, func(v *scene.Versions, _ func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, after: [one]", scene.ConfigMapTemplate("b", options...)))
		}, there},
		"it is blocked by another one that fails": {nil, func(v *scene.Versions, between func(), options ...string) {
			end := v.FailWhile("patch", "services", scene.ErrAgain)
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesChild("gate", "Service", "s"), scene.AppliesTemplates("two, after: [gate]", scene.ConfigMapTemplate("b", options...)))
			v.Advance(time.Hour)
			between()
			end()
			v.Advance(time.Hour)
		}, there},
		"it waits for another child of its own": {nil, func(v *scene.Versions, between func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("c", "readyWhen: '${has(child.data.ready)}'"),
				`b: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: "${children.c.data.ready}"}}}`))
			v.Advance(time.Hour)
			between()
			v.Update(scene.ConfigMaps, "default", "c", scene.SetField("yes", "data", "ready"))
			v.Settle()
			v.Delete(scene.ConfigMaps, "default", "c")
			v.Advance(time.Minute)
		}, there},
		"its filter cannot be asked": {nil, func(v *scene.Versions, between func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, when: 'self.spec.missing == 1'", scene.ConfigMapTemplate("b", options...)))
			v.Advance(time.Hour)
			between()
			v.Set(int64(1), "spec", "missing")
			v.Settle()
		}, there},
		"it runs by time": {nil, func(v *scene.Versions, between func(), options ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, every: 1h, initialDelay: 30m", scene.ConfigMapTemplate("b", options...)))
			v.Advance(10 * time.Minute)
			between()
			v.Advance(time.Hour)
		}, there},
		"it runs by time, and the handler that had it is there no more": {nil, func(v *scene.Versions, between func(), options ...string) {
			v.Next(scene.AppliesTemplates("two, every: 1h, initialDelay: 30m", scene.ConfigMapTemplate("b", options...)), scene.LabelsSeen)
			v.Advance(10 * time.Minute)
			between()
			v.Advance(time.Hour)
		}, there},
		"its request fails at first": {nil, func(v *scene.Versions, _ func(), options ...string) {
			v.FailNext("patch", "configmaps", scene.ErrAgain)
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("b", options...)))
			v.Advance(time.Hour)
		}, there},
		"the process ends in between": {nil, func(v *scene.Versions, between func(), options ...string) {
			v.FailNext("patch", "configmaps", scene.ErrAgain)
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("b", options...)))
			v.Process.Kill()
			between()
			v.Process.Restart()
			v.Advance(time.Hour)
		}, there},
		"the handler that gets it is in Go": {nil, func(v *scene.Versions, _ func(), _ ...string) {
			v.NextInGo(map[string]dsl.Func{"makes": scene.MakesConfigMapB}, scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), `{id: two, call: makes}`)
		}, "ConfigMap b of two/"},
		"the handler that gets it is in Go, and fails before": {nil, func(v *scene.Versions, between func(), _ ...string) {
			var mended atomic.Bool
			v.NextInGo(map[string]dsl.Func{"makes": func(ctx context.Context, r *dsl.Request) error {
				if !mended.Load() {
					return scene.ErrAgain
				}
				return scene.MakesConfigMapB(ctx, r)
			}}, scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), `{id: two, call: makes}`)
			v.Advance(time.Hour)
			between()
			mended.Store(true)
			v.Advance(time.Hour)
		}, "ConfigMap b of two/"},
		"each handler says by itself what is wanted": {nil, func(v *scene.Versions, between func(), _ ...string) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a"), scene.ConfigMapTemplate("b", "includeWhen: '${self.spec.size == 1}'")),
				scene.AppliesTemplates("two", scene.ConfigMapTemplate("c", "includeWhen: '${self.spec.size > 1}'"),
					`d: {includeWhen: "${self.spec.size > 1}", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: b}}}`))
			between()
			v.Resize(2)
		}, "ConfigMap b of two/d"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a"), scene.ConfigMapTemplate("b", test.options...)))
				uid := v.Get(scene.ConfigMaps, "default", "b").GetUID()
				test.next(v, func() { v.Settle(); same(v, uid) }, test.options...)
				v.Settle()
				same(v, uid)
				if o := v.Get(scene.ConfigMaps, "default", "b"); o != nil && test.child != "ConfigMap b of "+o.GetAnnotations()["op.handwerk.dev/child"] {
					t.Errorf("it is of %s", o.GetAnnotations()["op.handwerk.dev/child"])
				}
			})
		})
	}
}

// TestAChildThatNoHandlerWantsGoes holds that a child goes that no handler wants, and that asking them costs no request.
func TestAChildThatNoHandlerWantsGoes(t *testing.T) {
	tests := map[string]struct {
		next  func(v *scene.Versions)
		wrote []string
		left  []string
		// apart: the writes do not wait for each other.
		apart bool
	}{
		"the others run after": {func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("c")))
		}, []string{"patch configmaps default/c", "delete configmaps default/b"}, []string{"ConfigMap a of one/a", "ConfigMap c of two/c"}, false},
		"another one makes other kinds and fails": {func(v *scene.Versions) {
			v.FailWhile("patch", "services", scene.ErrAgain)
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesChild("two", "Service", "c"))
		}, []string{"delete configmaps default/b", "update configmaps ops/op-children"}, []string{"ConfigMap a of one/a"}, true},
		"another one comes after": {func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, after: [one]", scene.ConfigMapTemplate("c")))
		}, []string{"patch configmaps default/c", "delete configmaps default/b"}, []string{"ConfigMap a of one/a", "ConfigMap c of two/c"}, false},
		"another one does not see the object": {func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, when: 'self.spec.size > 1'", scene.ConfigMapTemplate("b")))
		}, []string{"delete configmaps default/b"}, []string{"ConfigMap a of one/a"}, false},
		"another one is for deletions": {func(v *scene.Versions) {
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two, causes: [delete]", scene.ConfigMapTemplate("b", "ownership: labelled")))
		}, []string{"patch foos default/web", "delete configmaps default/b"}, []string{"ConfigMap a of one/a"}, false},
		"another one failed, and succeeds": {func(v *scene.Versions) {
			end := v.FailWhile("patch", "configmaps", scene.ErrAgain)
			v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), scene.AppliesTemplates("two", scene.ConfigMapTemplate("c")))
			v.Advance(time.Hour)
			v.WantChildren("ConfigMap a of one/a", "ConfigMap b of one/b")
			v.WantLog("stays until another handler", `"waitsFor"="two"`)
			end()
			v.Forget()
			v.Advance(time.Hour)
		}, []string{"patch configmaps default/c", "delete configmaps default/b"}, []string{"ConfigMap a of one/a", "ConfigMap c of two/c"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(scene.AppliesTemplates("one", scene.ConfigMapTemplate("a"), scene.ConfigMapTemplate("b")))
				v.Forget()
				test.next(v)
				v.Settle()
				if test.apart {
					v.WroteInAnyOrder(test.wrote...)
				} else {
					v.Wrote(test.wrote...)
				}
				v.WantChildren(test.left...)
			})
		})
	}
}
