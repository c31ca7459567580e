// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// keepsSize keeps a Deployment with as many replicas as web's size.
func keepsSize(spec dsl.ChildSpec) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
			_, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": size},
			}, spec)
			return err
		}))
	}
}

// makeReplicasImmutable makes the replicas of web's Deployment, which has so many, a field that cannot be changed. More is what else is
// wrong with it then.
func makeReplicasImmutable(s *scene.Stage, replicas int64, more ...*field.Error) {
	uid := child(s).GetUID()
	s.Refuse(scene.Deployments, func(o *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); o.GetUID() != uid || got == replicas {
			return nil
		}
		faults := append(field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), 2, "field is immutable")}, more...)
		return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", faults)
	})
}

// TestAChildIsRecreatedForAFieldThatCannotBeChanged: where a field cannot be changed, and only then, a child is deleted and
// recreated.
func TestAChildIsRecreatedForAFieldThatCannotBeChanged(t *testing.T) {
	recreate := dsl.ChildSpec{OnImmutable: dsl.RecreateChild}
	adopting := dsl.ChildSpec{OnImmutable: dsl.RecreateChild, Adopt: dsl.AdoptIfUnowned}
	const patched, deleted = "patch deployments default/web", "delete deployments default/web"
	const asked = "create deployments default/web-" // a dry run
	stays := func(s *scene.Stage, wrote ...string) {
		s.T.Helper()
		s.Settle()
		s.Wrote(wrote...)
		wantReplicas(s, 1)
		s.Advance(time.Hour)
		wantReplicas(s, 1)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is, when the template comes to something else": {Operator: keepsSize(recreate), Play: func(s *scene.Stage) {
			s.Begin()
			makeReplicasImmutable(s, 1)
			before := child(s).GetUID()
			s.Resize(2)
			s.Settle()
			s.Wrote(patched+": 422", asked, deleted, patched)
			wantReplicas(s, 2)
			if child(s).GetUID() == before {
				s.T.Error("it is the same object")
			}
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"it stays where the template does not say so": {Operator: keepsSize(dsl.ChildSpec{}), Play: func(s *scene.Stage) {
			s.Begin()
			makeReplicasImmutable(s, 1)
			s.Resize(2)
			stays(s, patched+": 422", asked)
		}},
		"it stays where the value would be refused in a new object, too": {Operator: keepsSize(recreate), Play: func(s *scene.Stage) {
			s.Begin()
			s.Refuse(scene.Deployments, func(o *unstructured.Unstructured) error {
				if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); got == 1 {
					return nil
				}
				faults := field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), 2, "field is immutable, as it says")}
				return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", faults)
			})
			s.Resize(2)
			stays(s, patched+": 422", asked+": 422")
		}},
		"it stays where something else is wrong as well": {Operator: keepsSize(recreate), Play: func(s *scene.Stage) {
			s.Begin()
			makeReplicasImmutable(s, 1, field.Required(field.NewPath("spec", "selector"), "must be given"))
			s.Resize(2)
			stays(s, patched+": 422")
		}},
		"it stays where it is to be adopted": {Operator: keepsSize(adopting), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1}}`)
			makeReplicasImmutable(s, 1)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 2}}`)
			stays(s, patched+": 422", asked)
		}},
		"it stays where somebody changed it, and not the template": {Operator: keepsSize(recreate), Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(7)} })
			s.Settle()
			s.Forget()
			s.Process.Kill()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(7)} })
			makeReplicasImmutable(s, 7)
			uid := child(s).GetUID()
			s.Process.Restart()
			s.Advance(time.Hour)
			if got := child(s); got == nil || got.GetUID() != uid {
				s.T.Error("it was recreated")
			}
		}},
		"one that a finalizer holds is waited for": {Operator: keepsSize(recreate), Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			makeReplicasImmutable(s, 1)
			s.Resize(2)
			s.Advance(time.Minute)
			wantReplicas(s, 1)
			s.Forget()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Settle()
			wantReplicas(s, 2)
			s.Wrote(patched)
		}},
	})
}
