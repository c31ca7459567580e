// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestChildrenMayBeDeclaredByKind holds that children may be declared by kind, whatever its plural is.
func TestChildrenMayBeDeclaredByKind(t *testing.T) {
	fox := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Fox"}
	for name, owns := range map[string]func(*dsl.Resource){
		"by kind":            func(foo *dsl.Resource) { foo.OwnsKind(fox) },
		"by kind, then name": func(foo *dsl.Resource) { foo.OwnsKind(fox); foo.Owns("foxen.v1.example.org") },
		"by name, then kind": func(foo *dsl.Resource) { foo.Owns("foxen.example.org"); foo.OwnsKind(fox) },
	} {
		operator := func(foo *dsl.Resource, j *kit.Journal) {
			owns(foo)
			foo.OnReconcile("keep", j.Note("keep", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, map[string]any{"apiVersion": "example.org/v1", "kind": "Fox", "metadata": map[string]any{"name": "web"}},
					dsl.ChildSpec{Handler: "keep", Name: "fox"})
				if err != nil {
					return err
				}
				all, err1 := r.Children.All()
				one, err2 := r.Children.Get("foxen.v1.example.org", "web")
				if len(all) != 1 || one == nil {
					j.Add(fmt.Sprint(all, one, err1, err2))
				}
				return nil
			}))
		}
		scene.PlayAll(t, map[string]scene.Scenario{name: {Operator: operator, Play: func(s *scene.Stage) {
			s.Serve(kit.Resource{Name: "foxen.v1.example.org", Kind: "Fox"})
			s.Launch()
			s.Create(scene.Web)
			s.Called("keep create")
			s.Update("foxen.v1.example.org", "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })
			s.Called("keep child")
			s.Wrote("patch foxen default/web")
		}}})
	}
}

// TestAnErrorOfApplyNamesTheChild holds that they are the server's still, and say what could not be applied.
func TestAnErrorOfApplyNamesTheChild(t *testing.T) {
	var failure error
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
			_, failure = r.Children.Apply(ctx, scene.ConfigMapWithValue("default", fmt.Sprint(r.Object.GetGeneration())))
			return nil
		})
	}
	name := schema.GroupResource{Resource: "configmaps"}
	tests := map[string]struct {
		err error
		is  func(error) bool
	}{
		"a field cannot be changed": {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "web", nil), apierrors.IsInvalid},
		"a quota is used up":        {apierrors.NewForbidden(name, "web", errors.New("exceeded quota: q")), apierrors.IsForbidden},
		"a quota is contended":      {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("modified")), apierrors.IsConflict},
	}
	for title, tt := range tests {
		for _, made := range []bool{false, true} {
			scene.PlayAll(t, map[string]scene.Scenario{fmt.Sprint(title, ", made before: ", made): {Operator: operator, Play: func(s *scene.Stage) {
				s.Launch()
				if made {
					s.Create(scene.Web)
					s.Settle()
					s.FailNext("patch", scene.ConfigMaps, tt.err)
					s.Resize(2)
				} else {
					s.FailNext("patch", scene.ConfigMaps, tt.err)
					s.Create(scene.Web)
				}
				s.Settle()
				if !tt.is(failure) || errors.Is(failure, dsl.ErrNotOwned) || !strings.Contains(failure.Error(), "ConfigMap default/web") {
					s.T.Errorf("the error is %v", failure)
				}
			}}})
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a version that is not watched": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
				d := scene.DeploymentNamed("web", int64(1))
				d["apiVersion"] = "apps/v1beta2"
				_, failure = r.Children.Apply(ctx, d)
				return nil
			})
		}, Play: func(s *scene.Stage) {
			s.Begin()
			if !dsl.IsPermanent(failure) || !strings.Contains(failure.Error(), "apps/v1beta2") {
				s.T.Errorf("the error is %v", failure)
			}
		}},
	})
}

// TestAChildOfAComputedKindIsPutBack holds that apply is woken by children whose kind is worked out, too.
func TestAChildOfAComputedKindIsPutBack(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, owns: [configmaps.v1, secrets.v1], handlers: [{id: config,
		needs: [{resource: configmaps, verbs: [get, create, patch, delete]}, {resource: secrets, verbs: [get, create, patch, delete]}],
		apply: {config: {apiVersion: v1, kind: "${self.spec.color == 'blue' ? 'Secret' : 'ConfigMap'}", metadata: {name: "${self.metadata.name}"}, data: {a: b}}}}]}`, func(s *scene.Stage) {
		s.Begin()
		s.Settle()
		if s.Get(scene.ConfigMaps, "default", "web") == nil {
			t.Fatal("no child")
		}
		s.Delete(scene.ConfigMaps, "default", "web")
		s.Advance(time.Hour)
		if s.Get(scene.ConfigMaps, "default", "web") == nil {
			t.Error("the child that somebody deleted is not put back")
		}
	})
}
