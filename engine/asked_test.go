// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/handlers"
)

// template is the template of a ConfigMap, with options before it.
func template(name string, more ...string) string {
	return name + `: {` + strings.Join(append(more, `template: {apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {a: b}}`), ", ") + `}`
}

// applies is a handler that applies templates. Before them stand other fields.
func applies(head string, templates ...string) string {
	return `{id: ` + head + `, apply: {` + strings.Join(templates, ", ") + `}}`
}

// calls starts the next version, with functions in Go for its handlers.
func (v *versions) calls(functions map[string]dsl.Func, handlersOf ...string) {
	v.t.Helper()
	if err := v.Process.Stop(); err != nil {
		v.t.Error(err)
	}
	registry := handlers.Standard()
	for name, fn := range functions {
		registry.Func(name, fn)
	}
	op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [`+
		`{resource: foos.v1.example.com, owns: [configmaps.v1], handlers: [`+strings.Join(handlersOf, ", ")+`]}]}`), registry)
	if err != nil {
		v.t.Fatal(err)
	}
	v.Operator = op
	v.Forget()
	v.log.take()
	v.Process = v.Start(op, func(s *engine.Settings) { s.Namespace, s.Log = inOps, v.log.logger(s.Log) })
}

// makesB makes the ConfigMap b.
func makesB(ctx ctx, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}, "data": map[string]any{"a": "b"},
	})
	return err
}

// TestAChildThatMovesToAnotherHandler holds that a child which another handler of the next version wants is not taken away
// before: it is the same object afterwards, whatever keeps the handler from running at once.
func TestAChildThatMovesToAnotherHandler(t *testing.T) {
	const there = "ConfigMap b of two/b"
	same := func(v *versions, uid types.UID) {
		v.t.Helper()
		if o := v.Get(configMaps, "default", "b"); o == nil || o.GetUID() != uid || o.GetDeletionTimestamp() != nil {
			v.t.Error("the child was taken away")
		}
	}
	tests := map[string]struct {
		// options are those of the child.
		options []string
		// next starts the next version, and moves on until the child has moved. Between, the child must be there.
		next func(v *versions, between func(), options ...string)
		// child is how it is found at last, by default that of handler two.
		child string
	}{
		"the handler that had it is before the one that gets it": {nil, func(v *versions, _ func(), options ...string) {
			v.version(applies("one", template("a")), applies("two", template("b", options...)))
		}, there},
		"the handler that had it is behind": {nil, func(v *versions, _ func(), options ...string) {
			v.version(applies("two", template("b", options...)), applies("one", template("a")))
		}, there},
		"a labelled child": {[]string{"ownership: labelled"}, func(v *versions, _ func(), options ...string) {
			v.version(applies("one", template("a")), applies("two", template("b", options...)))
		}, there},
		"a child that would be cut loose": {[]string{"onDelete: orphan"}, func(v *versions, _ func(), options ...string) {
			v.version(applies("one", template("a")), applies("two", template("b", options...)))
		}, there + ";orphan"},
		"the handler that gets it comes after the one that had it": {nil, func(v *versions, _ func(), options ...string) {
			v.version(applies("one", template("a")), applies("two, after: [one]", template("b", options...)))
		}, there},
		"it is blocked by another one that fails": {nil, func(v *versions, between func(), options ...string) {
			end := v.FailWhile("patch", "services", errAgain)
			v.version(applies("one", template("a")), childOf("gate", "Service", "s"), applies("two, after: [gate]", template("b", options...)))
			v.Advance(time.Hour)
			between()
			end()
			v.Advance(time.Hour)
		}, there},
		"it waits for another child of its own": {nil, func(v *versions, between func(), options ...string) {
			v.version(applies("one", template("a")), applies("two", template("c", "readyWhen: '${has(child.data.ready)}'"),
				`b: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: "${children.c.data.ready}"}}}`))
			v.Advance(time.Hour)
			between()
			v.Update(configMaps, "default", "c", func(o *unstructured.Unstructured) { v.setField(o, "yes", "data", "ready") })
			v.Settle()
			v.Delete(configMaps, "default", "c")
			v.Advance(time.Minute)
		}, there},
		"its filter cannot be asked": {nil, func(v *versions, between func(), options ...string) {
			v.version(applies("one", template("a")), applies("two, when: 'self.spec.missing == 1'", template("b", options...)))
			v.Advance(time.Hour)
			between()
			v.set(int64(1), "spec", "missing")
			v.Settle()
		}, there},
		"it runs by time": {nil, func(v *versions, between func(), options ...string) {
			v.version(applies("one", template("a")), applies("two, every: 1h, initialDelay: 30m", template("b", options...)))
			v.Advance(10 * time.Minute)
			between()
			v.Advance(time.Hour)
		}, there},
		"it runs by time, and the handler that had it is there no more": {nil, func(v *versions, between func(), options ...string) {
			v.version(applies("two, every: 1h, initialDelay: 30m", template("b", options...)), seesIt)
			v.Advance(10 * time.Minute)
			between()
			v.Advance(time.Hour)
		}, there},
		"its request fails at first": {nil, func(v *versions, _ func(), options ...string) {
			v.FailNext("patch", "configmaps", errAgain)
			v.version(applies("one", template("a")), applies("two", template("b", options...)))
			v.Advance(time.Hour)
		}, there},
		"the process ends in between": {nil, func(v *versions, between func(), options ...string) {
			v.FailNext("patch", "configmaps", errAgain)
			v.version(applies("one", template("a")), applies("two", template("b", options...)))
			v.Process.Kill()
			between()
			v.Process.Restart()
			v.Advance(time.Hour)
		}, there},
		"the handler that gets it is in Go": {nil, func(v *versions, _ func(), _ ...string) {
			v.calls(map[string]dsl.Func{"makes": makesB}, applies("one", template("a")), `{id: two, call: makes}`)
		}, "ConfigMap b of two/"},
		"the handler that gets it is in Go, and fails before": {nil, func(v *versions, between func(), _ ...string) {
			var mended atomic.Bool
			v.calls(map[string]dsl.Func{"makes": func(ctx ctx, r *dsl.Request) error {
				if !mended.Load() {
					return errAgain
				}
				return makesB(ctx, r)
			}}, applies("one", template("a")), `{id: two, call: makes}`)
			v.Advance(time.Hour)
			between()
			mended.Store(true)
			v.Advance(time.Hour)
		}, "ConfigMap b of two/"},
		"each handler says by itself what is wanted": {nil, func(v *versions, between func(), _ ...string) {
			v.version(applies("one", template("a"), template("b", "includeWhen: '${self.spec.size == 1}'")),
				applies("two", template("c", "includeWhen: '${self.spec.size > 1}'"),
					`d: {includeWhen: "${self.spec.size > 1}", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: b}}}`))
			between()
			v.size(2)
		}, "ConfigMap b of two/d"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(applies("one", template("a"), template("b", test.options...)))
				uid := v.Get(configMaps, "default", "b").GetUID()
				test.next(v, func() { v.Settle(); same(v, uid) }, test.options...)
				v.Settle()
				same(v, uid)
				if o := v.Get(configMaps, "default", "b"); o != nil && test.child != "ConfigMap b of "+o.GetAnnotations()["op.handwerk.dev/child"] {
					t.Errorf("it is of %s", o.GetAnnotations()["op.handwerk.dev/child"])
				}
			})
		})
	}
}

// TestAChildThatNobodyWants holds that a child goes that no handler wants, and that asking them costs no request.
func TestAChildThatNobodyWants(t *testing.T) {
	tests := map[string]struct {
		next  func(v *versions)
		wrote []string
		left  []string
	}{
		"the others run after": {func(v *versions) {
			v.version(applies("one", template("a")), applies("two", template("c")))
		}, []string{"patch configmaps default/c", "delete configmaps default/b"}, []string{"ConfigMap a of one/a", "ConfigMap c of two/c"}},
		"another one makes other kinds and fails": {func(v *versions) {
			v.FailWhile("patch", "services", errAgain)
			v.version(applies("one", template("a")), childOf("two", "Service", "c"))
		}, []string{"delete configmaps default/b", "update configmaps ops/op-children"}, []string{"ConfigMap a of one/a"}},
		"another one comes after": {func(v *versions) {
			v.version(applies("one", template("a")), applies("two, after: [one]", template("c")))
		}, []string{"patch configmaps default/c", "delete configmaps default/b"}, []string{"ConfigMap a of one/a", "ConfigMap c of two/c"}},
		"another one does not see the object": {func(v *versions) {
			v.version(applies("one", template("a")), applies("two, when: 'self.spec.size > 1'", template("b")))
		}, []string{"delete configmaps default/b"}, []string{"ConfigMap a of one/a"}},
		"another one is for deletions": {func(v *versions) {
			v.version(applies("one", template("a")), applies("two, causes: [delete]", template("b", "ownership: labelled")))
		}, []string{"patch foos default/web", "delete configmaps default/b"}, []string{"ConfigMap a of one/a"}},
		"another one failed, and succeeds": {func(v *versions) {
			end := v.FailWhile("patch", "configmaps", errAgain)
			v.version(applies("one", template("a")), applies("two", template("c")))
			v.Advance(time.Hour)
			v.has("ConfigMap a of one/a", "ConfigMap b of one/b")
			v.says("stays until another handler", `"waitsFor"="two"`)
			end()
			v.Forget()
			v.Advance(time.Hour)
		}, []string{"patch configmaps default/c", "delete configmaps default/b"}, []string{"ConfigMap a of one/a", "ConfigMap c of two/c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(applies("one", template("a"), template("b")))
				v.Forget()
				test.next(v)
				v.Settle()
				v.Wrote(test.wrote...)
				v.has(test.left...)
			})
		})
	}
}
