// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ownObjects are what an operator keeps for itself, by resource.
var ownObjects = map[string]map[string]any{
	"configmaps.v1": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "op-children", "namespace": scene.OpsNamespace}},
	"secrets.v1":    {"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "op-key", "namespace": scene.OpsNamespace}},
	scene.Leases: {
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "op-leader", "namespace": scene.OpsNamespace},
	},
}

// TestTheOperatorsOwnObjectsCannotBeChildren has templates whose names come from an object aim at what the operator keeps for
// itself.
func TestTheOperatorsOwnObjectsCannotBeChildren(t *testing.T) {
	const aims = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: ops}, spec: {size: 1}}`
	for resource, own := range ownObjects {
		for _, there := range []bool{true, false} {
			t.Run(resource+map[bool]string{true: ", which is there", false: ", which is not there yet"}[there], func(t *testing.T) {
				scene.PlayVersions(t, func(v *scene.Versions) {
					kind, name := own["kind"].(string), own["metadata"].(map[string]any)["name"].(string)
					if there {
						v.Create(own)
					}
					v.Create(aims)
					before := v.Get(resource, scene.OpsNamespace, name)
					v.Next(`{id: app, apply: {a: {adopt: ifUnowned, template: {apiVersion: ` + own["apiVersion"].(string) + `, kind: ` + kind +
						`, metadata: {name: ` + name + `, namespace: ops, annotations: {taken: "yes"}}}, ownership: labelled}}}`)
					v.Settle()
					v.WantLog("it is the operator's own", "give the object another name", name)
					if diff := cmp.Diff(before, v.Get(resource, scene.OpsNamespace, name)); diff != "" {
						v.T.Errorf("the object (-before +after):\n%s", diff)
					}
				})
			})
		}
	}
}

// TestHandlersCannotWriteTheOperatorsOwnObjects tries each way in which a handler can write another object.
func TestHandlersCannotWriteTheOperatorsOwnObjects(t *testing.T) {
	ways := map[string]func(c context.Context, r *dsl.Request, resource string, o *unstructured.Unstructured) error{
		"apply": func(c context.Context, r *dsl.Request, _ string, o *unstructured.Unstructured) error {
			_, err := r.Client.Apply(c, o)
			return err
		},
		"create": func(c context.Context, r *dsl.Request, _ string, o *unstructured.Unstructured) error {
			_, err := r.Client.Create(c, o)
			return err
		},
		"merge patch": func(c context.Context, r *dsl.Request, resource string, o *unstructured.Unstructured) error {
			_, err := r.Client.MergePatch(c, resource, o.GetNamespace(), o.GetName(), map[string]any{"data": nil})
			return err
		},
		"delete": func(c context.Context, r *dsl.Request, resource string, o *unstructured.Unstructured) error {
			return r.Client.Delete(c, resource, o.GetNamespace(), o.GetName(), "")
		},
		"delete by kind": func(c context.Context, r *dsl.Request, _ string, o *unstructured.Unstructured) error {
			return r.Client.DeleteObject(c, o)
		},
		"child": func(c context.Context, r *dsl.Request, _ string, o *unstructured.Unstructured) error {
			_, err := r.Children.Apply(c, o, dsl.ChildSpec{Name: "a", Ownership: dsl.Unowned, Adopt: dsl.AdoptIfUnowned})
			return err
		},
	}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.OnCreate("aims", func(c context.Context, r *dsl.Request) error {
			for resource, own := range ownObjects {
				for way, do := range ways {
					err := do(c, r, resource, (&unstructured.Unstructured{Object: own}).DeepCopy())
					if err == nil || !strings.Contains(err.Error(), "it is the operator's own") {
						t.Errorf("%s of %s: %v", way, resource, err)
					}
				}
			}
			return nil
		})
	}, Play: func(s *scene.Stage) {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		for _, own := range ownObjects {
			s.Create(own)
		}
		s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Namespace = scene.OpsNamespace })
		s.Create(scene.Web)
		s.Settle()
	}})
}

// TestTheOperatorsOwnObjectsAreNotHandled has an operator handle all ConfigMaps, its register among them.
func TestTheOperatorsOwnObjectsAreNotHandled(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: ops}}`)
		v.NextResources(`{resource: foos.v1.example.com, handlers: [` + scene.AppliesChild("app", "Deployment", "a") + `]}, ` +
			`{resource: configmaps.v1, handlers: [{id: label, set: {labels: {seen: "yes"}}}, {id: holds, causes: [delete], log: {message: bye}}]}`)
		v.Advance(time.Minute)
		if o := v.Get(scene.ConfigMaps, scene.OpsNamespace, "theirs"); o.GetLabels()["seen"] != "yes" || len(o.GetFinalizers()) != 1 {
			v.T.Errorf("another ConfigMap is not handled: %v", o)
		}
		if o := v.Get(scene.ConfigMaps, scene.OpsNamespace, "op-children"); len(o.GetLabels()) > 0 || len(o.GetFinalizers()) > 0 || len(o.GetAnnotations()) > 0 {
			v.T.Errorf("the register is handled: %v", o)
		}
	})
}
