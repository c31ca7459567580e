// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
)

// keepsSize keeps a Deployment with as many replicas as web's size.
func keepsSize(spec dsl.ChildSpec) func(*dsl.Resource, *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx ctx, r *dsl.Request) error {
			size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
			_, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": size},
			}, spec)
			return err
		}))
	}
}

// fixes makes the replicas of web's Deployment, which has so many, a field that cannot be changed. More is what else is
// wrong with it then.
func (s *stage) fixes(replicas int64, more ...*field.Error) {
	uid := s.child().GetUID()
	s.Refuse(deployments, func(o *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); o.GetUID() != uid || got == replicas {
			return nil
		}
		faults := append(field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), 2, "field is immutable")}, more...)
		return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", faults)
	})
}

// TestAChildIsMadeAnew: where a field cannot be changed, and only then, a child is deleted and made anew.
func TestAChildIsMadeAnew(t *testing.T) {
	recreate := dsl.ChildSpec{OnImmutable: dsl.RecreateChild}
	adopting := dsl.ChildSpec{OnImmutable: dsl.RecreateChild, Adopt: dsl.AdoptIfUnowned}
	const patched, deleted = "patch deployments default/web", "delete deployments default/web"
	stays := func(s *stage, wrote ...string) {
		s.t.Helper()
		s.Settle()
		s.Wrote(wrote...)
		s.replicas(1)
		s.Advance(time.Hour)
		s.replicas(1)
	}
	scenarios(t, map[string]scenario{
		"it is, when the template comes to something else": {keepsSize(recreate), func(s *stage) {
			s.begin()
			s.fixes(1)
			before := s.child().GetUID()
			s.size(2)
			s.Settle()
			s.Wrote(patched+": 422", deleted, patched)
			s.replicas(2)
			if s.child().GetUID() == before {
				s.t.Error("it is the same object")
			}
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"it stays where nobody says so": {keepsSize(dsl.ChildSpec{}), func(s *stage) {
			s.begin()
			s.fixes(1)
			s.size(2)
			stays(s, patched+": 422")
		}},
		"it stays where something else is wrong as well": {keepsSize(recreate), func(s *stage) {
			s.begin()
			s.fixes(1, field.Required(field.NewPath("spec", "selector"), "must be given"))
			s.size(2)
			stays(s, patched+": 422")
		}},
		"it stays where it is to be adopted": {keepsSize(adopting), func(s *stage) {
			s.Launch()
			s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1}}`)
			s.fixes(1)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 2}}`)
			stays(s, patched+": 422")
		}},
		"it stays where somebody changed it, and not the template": {keepsSize(recreate), func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(7)} })
			s.Settle()
			s.Forget()
			s.Process.Kill()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(7)} })
			s.fixes(7)
			uid := s.child().GetUID()
			s.Process.Restart()
			s.Advance(time.Hour)
			if got := s.child(); got == nil || got.GetUID() != uid {
				s.t.Error("it was made anew")
			}
		}},
		"one that a finalizer holds is waited for": {keepsSize(recreate), func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			s.fixes(1)
			s.size(2)
			s.Advance(time.Minute)
			s.replicas(1)
			s.Forget()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Settle()
			s.replicas(2)
			s.Wrote(patched)
		}},
	})
}
