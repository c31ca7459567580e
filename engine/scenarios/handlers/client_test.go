// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// creates declares a create handler that does one thing.
func creates(do dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("once", j.Note("once", do)) }
}

// TestHandlersReadAndWriteOtherObjects holds what handlers can do with objects that are not theirs.
func TestHandlersReadAndWriteOtherObjects(t *testing.T) {
	var got string
	const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {a: b}}, data: {key: value}}`
	scene.PlayAll(t, map[string]scene.Scenario{
		"what is watched is read from the cache": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("look", func(ctx context.Context, r *dsl.Request) error {
					cached, err1 := r.Client.Get(ctx, scene.Foos, "default", "second")
					listed, err2 := r.Client.List(ctx, scene.Foos, "default", "a=b")
					got = fmt.Sprint(cached.GetLabels(), err1, len(listed), err2)
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second, labels: {a: b}}}`)
				s.Settle()
				s.FailNext("get", scene.Foos, scene.ErrAgain)
				s.FailNext("list", scene.Foos, scene.ErrAgain)
				s.Resize(2)
				s.Settle()
				if want := "map[a:b] <nil> 1 <nil>"; got != want {
					s.T.Errorf("got %s, want %s", got, want)
				}
			},
		},
		"what is not watched is read from the server, and errors are the server's": {
			Operator: creates(func(ctx context.Context, r *dsl.Request) error {
				one, err1 := r.Client.Get(ctx, "configmaps", "default", "other")
				list, err2 := r.Client.List(ctx, "configmaps.v1", "", "a=b")
				_, err3 := r.Client.Get(ctx, "configmaps.v1", "default", "missing")
				got = fmt.Sprint(one.GetName(), err1, len(list), err2, apierrors.IsNotFound(err3))
				return nil
			}), Play: func(s *scene.Stage) {
				s.Create(config)
				s.Begin()
				if want := "other<nil> 1 <nil> true"; got != want {
					s.T.Errorf("got %s, want %s", got, want)
				}
			},
		},
		"a page that is not found says nothing of an object": {
			Operator: creates(func(ctx context.Context, r *dsl.Request) error {
				_, err1 := r.Client.Get(ctx, "configmaps.v1", "default", "other")
				err2 := r.Client.Delete(ctx, "configmaps.v1", "default", "other", "")
				_, err3 := r.Client.MergePatch(ctx, "configmaps.v1", "default", "other", map[string]any{"data": nil})
				got = fmt.Sprint(err1 != nil, apierrors.IsNotFound(err1), err2 != nil, apierrors.IsNotFound(err2), err3 != nil, apierrors.IsNotFound(err3))
				return nil
			}), Play: func(s *scene.Stage) {
				s.Create(config)
				for _, verb := range []string{"get", "delete", "patch"} {
					s.FailNext(verb, "configmaps.v1", kit.ErrPage)
				}
				s.Begin()
				if want := "true false true false true false"; got != want {
					s.T.Errorf("got %s, want %s", got, want)
				}
			},
		},
		"it writes under the operator's name": {
			Operator: creates(func(ctx context.Context, r *dsl.Request) error {
				_, err1 := r.Client.MergePatch(ctx, "configmaps.v1", "default", "other", map[string]any{"data": map[string]any{"key": "new"}})
				made, err2 := r.Client.Create(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "made", "namespace": "default"}})
				_, err3 := r.Client.Create(ctx, made.Object)
				err4 := r.Client.Delete(ctx, "configmaps.v1", "default", "made", "another-uid")
				err5 := r.Client.Delete(ctx, "configmaps.v1", "default", "made", string(made.GetUID()))
				got = fmt.Sprint(err1, err2, err3 != nil, apierrors.IsConflict(err4), err5)
				return nil
			}), Play: func(s *scene.Stage) {
				s.Create(config)
				s.Begin()
				if want := "<nil> <nil> true true <nil>"; got != want {
					s.T.Errorf("got %s, want %s", got, want)
				}
				o := s.Get("configmaps.v1", "default", "other")
				var managers []string
				for _, m := range o.GetManagedFields() {
					managers = append(managers, m.Manager)
				}
				if diff := cmp.Diff([]string{"kit", "op"}, managers); diff != "" {
					s.T.Errorf("managers (-want +got):\n%s", diff)
				}
			},
		},
		"an object at hand is deleted by its kind, whatever its resource is called": {
			Operator: creates(func(ctx context.Context, r *dsl.Request) error {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sea.io/v1", "kind": "Octopus"}}
				o.SetNamespace("default")
				o.SetName("ink")
				o.SetUID("another")
				err1 := r.Client.DeleteObject(ctx, o)
				o.SetUID("")
				err2 := r.Client.DeleteObject(ctx, o)
				got = fmt.Sprint(apierrors.IsConflict(err1), err2)
				return nil
			}), Play: func(s *scene.Stage) {
				s.Serve(kit.Resource{Name: "octopi.v1.sea.io", Kind: "Octopus"})
				s.Create(`{apiVersion: sea.io/v1, kind: Octopus, metadata: {name: ink}}`)
				s.Begin()
				if want := "true <nil>"; got != want || s.Get("octopi.v1.sea.io", "default", "ink") != nil {
					s.T.Errorf("got %s, want %s, and it to be gone", got, want)
				}
			},
		},
		"what a handler changes in its object has no effect": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("scribble", func(_ context.Context, r *dsl.Request) error {
					r.Object.Object["spec"].(map[string]any)["size"] = int64(99)
					return nil
				})
				foo.OnReconcile("look", j.Note("look", func(_ context.Context, r *dsl.Request) error {
					size, _, err := unstructured.NestedInt64(r.Object.Object, "spec", "size")
					j.Add(fmt.Sprint(size))
					return err
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("look create", "1")
				s.Wrote()
			},
		},
		"Events are reported for the object, and counted when they come again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("report", func(_ context.Context, r *dsl.Request) error {
					size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
					r.Events.Event(dsl.Normal, "Sized", "It has a size: %v.", size != nil)
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Begin()
				for i := range int64(6) {
					s.Advance(time.Second)
					s.Resize(2 + i)
				}
				s.Advance(20 * time.Minute) // a count is sent when no more came for a while
				events := s.Events()
				if len(events) != 1 || events[0].Count != 7 || events[0].Name != "web" || events[0].Note != "It has a size: true." || events[0].Action != "report" {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}
