// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// typedFoo is a Foo as an author of a handler writes it down: with fewer fields than it has.
type typedFoo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size  int64  `json:"size"`
		Title string `json:"title"`
	} `json:"spec"`
	Status struct {
		Size       int64              `json:"size"`
		Phase      string             `json:"phase"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

type typedRequest = dsl.TypedRequest[typedFoo]

// TestTypedAndUntypedMakeTheSameRequests holds that handlers which ask for the same make the same requests, to the letter,
// whether they have the object in a type of their own or not.
func TestTypedAndUntypedMakeTheSameRequests(t *testing.T) {
	tests := map[string]struct {
		untyped dsl.Func
		typed   func(ctx context.Context, r *typedRequest) error
	}{
		"status": {
			func(_ context.Context, r *dsl.Request) error {
				size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
				r.Patch.SetStatus("size", size)
				return nil
			},
			func(_ context.Context, r *typedRequest) error {
				r.Object.Status.Size = r.Object.Spec.Size
				return nil
			},
		},
		"a condition": {
			func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetCondition("Ready", metav1.ConditionTrue, "Done", "all is well")
				return nil
			},
			func(_ context.Context, r *typedRequest) error {
				meta.SetStatusCondition(&r.Object.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Done", Message: "all is well"})
				return nil
			},
		},
		"the spec, a label and the status, and then it fails": {
			func(_ context.Context, r *dsl.Request) error {
				if title, _ := dsl.MustParsePath("spec.title").In(r.Object.Object); title != "t" { // Patch asks for what is there, too
					r.Patch.Set("spec.title", "t")
					r.Patch.Label("a", "b")
					r.Patch.SetStatus("phase", "Waits")
				}
				return dsl.Temporary(scene.ErrAgain, time.Minute)
			},
			func(_ context.Context, r *typedRequest) error {
				r.Object.Spec.Title = "t"
				r.Object.Labels = map[string]string{"a": "b"}
				r.Object.Status.Phase = "Waits"
				return dsl.Temporary(scene.ErrAgain, time.Minute)
			},
		},
		"a child": {
			func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.Object.GetName()}, "data": map[string]any{"a": "b"},
				})
				return err
			},
			func(ctx context.Context, r *typedRequest) error {
				applied, err := dsl.As[corev1.ConfigMap](r.Children.Apply(ctx, &corev1.ConfigMap{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: r.Object.Name}, Data: map[string]string{"a": "b"},
				}))
				if err == nil && (applied.UID == "" || applied.Data["a"] != "b") {
					err = errors.New("the child is not as it was applied")
				}
				return err
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want, got := requestsOf(t, tt.untyped), requestsOf(t, dsl.Typed(tt.typed))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-untyped +typed):\n%s", diff)
			}
		})
	}
}

// requestsOf returns what an operator with one handler writes, in its life of some minutes.
func requestsOf(t *testing.T, fn dsl.Func) (writes []kit.Write) {
	t.Helper()
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On(scene.CreateAndUpdate(), "work", j.Note("work", fn))
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.Resize(2)
			s.Advance(5 * time.Minute)
			writes = s.Writes()
			s.Process.Restart()
			s.Settle()
			writes = append(writes, s.Writes()...)
		},
	})
	return writes
}

// TestTypedHandlersSeeAndChangeTheirObject holds what handlers with an object of their own type see and leave behind.
func TestTypedHandlersSeeAndChangeTheirObject(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the next handler sees what the one before it wrote, and fields that neither knows stay": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "first", dsl.Typed(func(_ context.Context, r *typedRequest) error {
					r.Object.Status.Size, r.Object.Spec.Title = r.Object.Spec.Size, "t"
					return nil
				}))
				foo.On(scene.CreateAndUpdate(), "second", dsl.Typed(func(_ context.Context, r *typedRequest) error {
					j.Add(fmt.Sprint(r.Object.Status.Size, " ", r.Object.Spec.Title))
					r.Object.Status.Phase = "Up"
					return nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 9007199254740993, color: red}, status: {theirs: 1}}`)
				s.Launch()
				s.Called("9007199254740993 t")
				s.Wrote("patch foos/status default/web", "patch foos default/web")
				want := map[string]any{"size": int64(9007199254740993), "phase": "Up", "theirs": int64(1)}
				if diff := cmp.Diff(want, s.Web().Object["status"]); diff != "" {
					s.T.Errorf("status (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]any{"size": int64(9007199254740993), "title": "t", "color": "red"}, s.Web().Object["spec"]); diff != "" {
					s.T.Errorf("spec (-want +got):\n%s", diff)
				}
			},
		},
		"old is typed, nil on create; the status is as the last run left it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "work", dsl.Typed(func(_ context.Context, r *typedRequest) error {
					if r.Old == nil {
						j.Add("new")
					} else {
						j.Add(fmt.Sprintf("from %d to %d, reported %d", r.Old.Spec.Size, r.Object.Spec.Size, r.Object.Status.Size))
					}
					r.Object.Status.Size = r.Object.Spec.Size
					return nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("new")
				s.Resize(5)
				s.Called("from 1 to 5, reported 1")
			},
		},
		"what is changed while the handler runs is not overwritten, and it runs again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("work", dsl.Typed(func(_ context.Context, r *typedRequest) error {
					j.Add(fmt.Sprint(r.Object.Spec.Size))
					r.Object.Status.Size, r.Object.Spec.Title = r.Object.Spec.Size, fmt.Sprint(r.Object.Spec.Size)
					<-time.After(time.Minute)
					return nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Second)
				s.Resize(2)
				s.Set("blue", "spec", "color")
				s.Advance(time.Hour)
				s.Called("1", "2")
				s.Wrote("patch foos/status default/web: 409", "patch foos/status default/web", "patch foos default/web")
				if diff := cmp.Diff(map[string]any{"size": int64(2), "title": "2", "color": "blue"}, s.Web().Object["spec"]); diff != "" {
					s.T.Errorf("spec (-want +got):\n%s", diff)
				}
			},
		},
		"what it wanted before it panicked is not sent": {
			Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnReconcile("work", dsl.Typed(func(_ context.Context, r *typedRequest) error {
					r.Object.Status.Phase = "Lost"
					panic("at the disco")
				}), dsl.Retries(0))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote()
				if status, found := s.Web().Object["status"]; found {
					s.T.Errorf("status: %v", status)
				}
			},
		},
		"conditions that others set meanwhile stay": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("work", dsl.Typed(func(ctx context.Context, r *typedRequest) error {
					meta.SetStatusCondition(&r.Object.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Done"})
					j.Add("work")
					_, err := r.Client.MergePatch(ctx, scene.Foos, "default", "web", map[string]any{"status": map[string]any{"conditions": []any{
						map[string]any{"type": "Theirs", "status": "True"},
					}}}, "status")
					return err
				}))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("work")
				found, _ := dsl.MustParsePath("status.conditions").In(s.Web().Object)
				if list, _ := found.([]any); len(list) != 2 {
					s.T.Errorf("conditions: %v", found)
				}
			},
		},
		"an object that does not fit is tried again, and the condition says what is wrong": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("work", dsl.Typed(func(context.Context, *typedRequest) error { j.Add("work"); return nil }))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: big}}`)
				s.Advance(time.Hour)
				s.Called()
				s.Resize(2)
				s.Called("work")
			},
		},
	})
}
