// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestKindsOfChildren holds that children may be declared by kind, whatever its plural is.
func TestKindsOfChildren(t *testing.T) {
	fox := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Fox"}
	for name, owns := range map[string]func(*dsl.Resource){
		"by kind":            func(foo *dsl.Resource) { foo.OwnsKind(fox) },
		"by kind, then name": func(foo *dsl.Resource) { foo.OwnsKind(fox); foo.Owns("foxen.v1.example.org") },
		"by name, then kind": func(foo *dsl.Resource) { foo.Owns("foxen.example.org"); foo.OwnsKind(fox) },
	} {
		operator := func(foo *dsl.Resource, j *journal) {
			owns(foo)
			foo.OnReconcile("keep", j.Note("keep", func(ctx ctx, r *dsl.Request) error {
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
		scenarios(t, map[string]scenario{name: {operator, func(s *stage) {
			s.Serve(enginetest.Resource{Name: "foxen.v1.example.org", Kind: "Fox"})
			s.Launch()
			s.Create(web)
			s.Called("keep create")
			s.Update("foxen.v1.example.org", "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })
			s.Called("keep child")
			s.Wrote("patch foxen default/web")
		}}})
	}
}

// TestErrorsOfApply holds that they are the server's still, and say what could not be applied.
func TestErrorsOfApply(t *testing.T) {
	var failure error
	operator := func(foo *dsl.Resource, j *journal) {
		foo.Owns(configMaps)
		foo.OnReconcile("keep", func(ctx ctx, r *dsl.Request) error {
			_, failure = r.Children.Apply(ctx, settings("default", fmt.Sprint(r.Object.GetGeneration())))
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
			scenarios(t, map[string]scenario{fmt.Sprint(title, ", made before: ", made): {operator, func(s *stage) {
				s.Launch()
				if made {
					s.Create(web)
					s.Settle()
					s.FailNext("patch", configMaps, tt.err)
					s.size(2)
				} else {
					s.FailNext("patch", configMaps, tt.err)
					s.Create(web)
				}
				s.Settle()
				if !tt.is(failure) || errors.Is(failure, dsl.ErrNotOwned) || !strings.Contains(failure.Error(), "ConfigMap default/web") {
					s.t.Errorf("the error is %v", failure)
				}
			}}})
		}
	}
	scenarios(t, map[string]scenario{
		"a version that is not watched": {operator: func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("keep", func(ctx ctx, r *dsl.Request) error {
				d := deployment("web", int64(1))
				d["apiVersion"] = "apps/v1beta2"
				_, failure = r.Children.Apply(ctx, d)
				return nil
			})
		}, play: func(s *stage) {
			s.begin()
			if !dsl.IsPermanent(failure) || !strings.Contains(failure.Error(), "apps/v1beta2") {
				s.t.Errorf("the error is %v", failure)
			}
		}},
	})
}
