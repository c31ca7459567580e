// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

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
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const oneChild = "patch deployments default/web"

// countReads counts requests that read one Deployment.
func countReads(s *scene.Stage) (read func(want int)) {
	s.T.Helper()
	counted := s.FailWhile("get", scene.Deployments, nil)
	return func(want int) {
		s.T.Helper()
		s.Settle()
		if got := counted(); got != want {
			s.T.Errorf("%d reads, want %d", got, want)
		}
		counted = s.FailWhile("get", scene.Deployments, nil)
	}
}

// TestAChildCostsFewRequests follows a child through its life, and counts the requests for it, reads among them.
func TestAChildCostsFewRequests(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"one makes it, one changes it, one makes it again, and none is for what is as it should be": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					d := scene.DeploymentNamed("web", int64(1))
					if size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object); size == int64(1) {
						d["spec"].(map[string]any)["paused"] = true
					}
					r.Patch.SetStatus("known", true)
					_, err := r.Children.Apply(ctx, d)
					return err
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				read := countReads(s)
				s.Create(scene.Web)
				s.Wrote(oneChild, "patch foos/status default/web")
				if managed := child(s).GetManagedFields(); len(managed) != 1 || managed[0].Operation != metav1.ManagedFieldsOperationApply {
					s.T.Errorf("its fields are managed by %v", managed)
				}
				s.Resize(2)
				s.Wrote(oneChild)
				if _, found, _ := unstructured.NestedBool(child(s).Object, "spec", "paused"); found {
					s.T.Error("spec.paused is still there")
				}
				s.Delete(scene.Deployments, "default", "web")
				s.Wrote(oneChild)
				s.Process.Kill()
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Wrote()
				read(0)
			},
		},
		"a process that ends before it reports it makes it once": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			read := countReads(s)
			s.Process.CrashAfter(1)
			s.Create(scene.Web)
			s.Settle()
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
			wantReplicas(s, 1)
			read(0)
		}},
		"one that the cache does not show is not made twice": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			s.HoldWatches(scene.Deployments)
			read := countReads(s)
			s.LoseNext("patch", scene.Deployments)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Wrote(oneChild, oneChild+": 409")
			read(1)
			wantReplicas(s, 1)
		}},
		"one that no cache shows is read first, for it would else be written to again and again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					_, err := r.Children.Apply(ctx, scene.DeploymentNamed("web", int64(1)), dsl.ChildSpec{Ownership: dsl.Unowned})
					return err
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				read := countReads(s)
				s.Create(scene.Web)
				s.Wrote(oneChild)
				read(1)
				s.Process.Restart()
				s.Wrote()
				read(1)
			},
		},
	})
}

// TestAnObjectThatSomebodyCreatesFirstIsNotTouched: what somebody else makes under the child's name, and the cache does not
// show yet, is not touched at all, though nothing in it conflicts.
func TestAnObjectThatSomebodyCreatesFirstIsNotTouched(t *testing.T) {
	var failure error
	keeps := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			failure = scene.KeepsDeployment(ctx, r)
			return failure
		}))
	}
	unseen := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			_, failure = r.Children.Apply(ctx, scene.DeploymentNamed("web", int64(1)), dsl.ChildSpec{Ownership: dsl.Unowned})
			return failure
		}))
	}
	for name, theirs := range map[string]string{
		"something else":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 7}}`,
		"the same":        `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`,
		"next to nothing": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`,
	} {
		untouched := func(s *scene.Stage, reads int) {
			before := s.Create(theirs)
			read := countReads(s)
			s.Create(scene.Web)
			s.Wrote(oneChild + ": 409")
			read(reads)
			if !errors.Is(failure, dsl.ErrNotOwned) {
				s.T.Errorf("the error is %v", failure)
			}
			if diff := cmp.Diff(before.Object, child(s).Object); diff != "" {
				s.T.Errorf("it was touched (-before +after):\n%s", diff)
			}
		}
		scene.PlayAll(t, map[string]scene.Scenario{
			name + ", before the cache shows it": {Operator: keeps, Play: func(s *scene.Stage) {
				s.Launch()
				s.HoldWatches(scene.Deployments)
				untouched(s, 1)
			}},
			name + ", after a look": {Operator: unseen, Play: func(s *scene.Stage) {
				s.Launch()
				s.FailNext("get", scene.Deployments, errNotFound())
				untouched(s, 1)
			}},
		})
	}
}

// TestAChildIsCreatedOnServersThatRefuseAVersion: where a server does not take a version for what is not there, the child is
// looked for and made without. What is wrong with the child itself, or with what it needs, is not asked about twice.
func TestAChildIsCreatedOnServersThatRefuseAVersion(t *testing.T) {
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
		"a webhook that refuses it as a conflict": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusConflict, Message: `admission webhook "w" denied the request: busy`,
		}}, []string{oneChild + ": 409"}, 0},
		"a quota that is busy":    {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("modified")), []string{oneChild + ": 409"}, 0},
		"a namespace not there":   {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), []string{oneChild + ": 404"}, 0},
		"an error of the network": {kit.ErrRefused, nil, 0},
	}
	for title, tt := range tests {
		scene.PlayAll(t, map[string]scene.Scenario{title: {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			read := countReads(s)
			s.FailNext("patch", scene.Deployments, tt.err)
			s.Create(scene.Web)
			s.Wrote(tt.wrote...)
			read(tt.reads)
			s.Advance(time.Minute)
			wantReplicas(s, 1)
		}}})
	}
}
