// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const oneChild = "patch deployments default/web"

// reads counts requests that read one Deployment.
func (s *stage) reads() (read func(want int)) {
	s.t.Helper()
	counted := s.FailWhile("get", deployments, nil)
	return func(want int) {
		s.t.Helper()
		s.Settle()
		if got := counted(); got != want {
			s.t.Errorf("%d reads, want %d", got, want)
		}
		counted = s.FailWhile("get", deployments, nil)
	}
}

// TestRequestsOfAChild follows a child through its life, and counts the requests for it, reads among them.
func TestRequestsOfAChild(t *testing.T) {
	scenarios(t, map[string]scenario{
		"one makes it, one changes it, one makes it anew, and none is for what is as it should be": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					d := deployment("web", int64(1))
					if size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object); size == int64(1) {
						d["spec"].(map[string]any)["paused"] = true
					}
					r.Patch.SetStatus("known", true)
					_, err := r.Children.Apply(ctx, d)
					return err
				}))
			}, func(s *stage) {
				s.Launch()
				read := s.reads()
				s.Create(web)
				s.Wrote(oneChild, "patch foos/status default/web")
				if managed := s.child().GetManagedFields(); len(managed) != 1 || managed[0].Operation != metav1.ManagedFieldsOperationApply {
					s.t.Errorf("its fields are managed by %v", managed)
				}
				s.size(2)
				s.Wrote(oneChild)
				if _, found, _ := unstructured.NestedBool(s.child().Object, "spec", "paused"); found {
					s.t.Error("spec.paused is still there")
				}
				s.Delete(deployments, "default", "web")
				s.Wrote(oneChild)
				s.Process.Kill()
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Wrote()
				read(0)
			},
		},
		"a process that ends before it tells of it makes it once": {parent, func(s *stage) {
			s.Launch()
			read := s.reads()
			s.Process.CrashAfter(1)
			s.Create(web)
			s.Settle()
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
			s.replicas(1)
			read(0)
		}},
		"one that the cache does not show is not made twice": {parent, func(s *stage) {
			s.Launch()
			s.HoldWatches(deployments)
			read := s.reads()
			s.LoseNext("patch", deployments)
			s.Create(web)
			s.Advance(time.Minute)
			s.Wrote(oneChild, oneChild+": 409")
			read(1)
			s.replicas(1)
		}},
		"one that no cache shows is read first, for it would else be written to again and again": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, deployment("web", int64(1)), dsl.ChildSpec{Ownership: dsl.Unowned})
					return err
				}))
			}, func(s *stage) {
				s.Launch()
				read := s.reads()
				s.Create(web)
				s.Wrote(oneChild)
				read(1)
				s.Process.Restart()
				s.Wrote()
				read(1)
			},
		},
	})
}

// TestSomebodyIsFaster: what somebody else makes under the child's name, and the cache does not show yet, is not touched at
// all, though nothing in it conflicts.
func TestSomebodyIsFaster(t *testing.T) {
	var failure error
	keeps := func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			failure = keepsChild(ctx, r)
			return failure
		}))
	}
	unseen := func(foo *dsl.Resource, j *journal) {
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			_, failure = r.Children.Apply(ctx, deployment("web", int64(1)), dsl.ChildSpec{Ownership: dsl.Unowned})
			return failure
		}))
	}
	for name, theirs := range map[string]string{
		"something else":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 7}}`,
		"the same":        `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`,
		"next to nothing": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`,
	} {
		untouched := func(s *stage, reads int) {
			before := s.Create(theirs)
			read := s.reads()
			s.Create(web)
			s.Wrote(oneChild + ": 409")
			read(reads)
			if !errors.Is(failure, dsl.ErrNotOwned) {
				s.t.Errorf("the error is %v", failure)
			}
			if diff := cmp.Diff(before.Object, s.child().Object); diff != "" {
				s.t.Errorf("it was touched (-before +after):\n%s", diff)
			}
		}
		scenarios(t, map[string]scenario{
			name + ", before the cache shows it": {keeps, func(s *stage) {
				s.Launch()
				s.HoldWatches(deployments)
				untouched(s, 1)
			}},
			name + ", after a look": {unseen, func(s *stage) {
				s.Launch()
				s.FailNext("get", deployments, notFound())
				untouched(s, 1)
			}},
		})
	}
}

// TestServersThatMakeNothingWithAVersion: where a server does not take a version for what is not there, the child is looked
// for and made without. What is wrong with the child itself, or with what it needs, is not asked about twice.
func TestServersThatMakeNothingWithAVersion(t *testing.T) {
	name := schema.GroupResource{Group: "apps", Resource: "deployments"}
	raw := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created",
	}}
	untyped := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "failed to create typed patch object: .dada: field not declared in schema",
	}}
	tests := map[string]struct {
		err   error
		wrote []string
		reads int
	}{
		"without a reason":                    {raw, []string{oneChild + ": 500", oneChild}, 1},
		"a field that the kind does not have": {untyped, []string{oneChild + ": 500"}, 0},
		"a bad request":                       {apierrors.NewBadRequest("no version"), []string{oneChild + ": 400", oneChild}, 1},
		"it is not found":                     {apierrors.NewNotFound(name, "web"), []string{oneChild + ": 404", oneChild}, 1},
		"a conflict":                          {apierrors.NewConflict(name, "web", errors.New("precondition")), []string{oneChild + ": 409", oneChild}, 1},
		"a webhook that fails":                {apierrors.NewInternalError(errors.New("failed calling webhook")), []string{oneChild + ": 500"}, 0},
		"what is not valid":                   {apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil), []string{oneChild + ": 422"}, 0},
		"it is not valid with a version": {apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
			field.Forbidden(field.NewPath("metadata", "resourceVersion"), "must be unset on create"),
		}), []string{oneChild + ": 422", oneChild}, 1},
		"a quota that is busy":    {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("modified")), []string{oneChild + ": 409"}, 0},
		"a namespace not there":   {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), []string{oneChild + ": 404"}, 0},
		"an error of the network": {enginetest.ErrRefused, nil, 0},
	}
	for title, tt := range tests {
		scenarios(t, map[string]scenario{title: {parent, func(s *stage) {
			s.Launch()
			read := s.reads()
			s.FailNext("patch", deployments, tt.err)
			s.Create(web)
			s.Wrote(tt.wrote...)
			read(tt.reads)
			s.Advance(time.Minute)
			s.replicas(1)
		}}})
	}
}
