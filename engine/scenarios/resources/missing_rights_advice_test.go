// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAMissingRightSaysWhatToDo: an error of a handler's request says whether it was not declared that the
// operator would need the right, or whether its roles are not the ones that it needs.
func TestAMissingRightSaysWhatToDo(t *testing.T) {
	const known = "; allow it to the operator: operator rbac prints the roles"
	configMap := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "default"}}
	tests := map[string]struct {
		verb, resource string
		options        []dsl.Option
		// causes are create, unless it says others.
		causes []dsl.Cause
		ask    dsl.Func
		want   string
	}{
		"that is not declared": {
			verb: "create", resource: scene.ConfigMaps,
			ask:  func(ctx context.Context, r *dsl.Request) error { _, err := r.Client.Create(ctx, configMap); return err },
			want: `; allow it to the operator: declare it with needs: [{resource: configmaps, verbs: [create]}] (dsl.Needs("create", "configmaps") in Go), and operator rbac prints the roles`,
		},
		"that was declared": {
			verb: "create", resource: scene.ConfigMaps, options: []dsl.Option{dsl.Needs("get,create", "configmaps")},
			ask:  func(ctx context.Context, r *dsl.Request) error { _, err := r.Client.Create(ctx, configMap); return err },
			want: known,
		},
		"that was declared for all verbs": {
			verb: "delete", resource: scene.ConfigMaps, options: []dsl.Option{dsl.Needs("*", "configmaps")},
			ask: func(ctx context.Context, r *dsl.Request) error {
				return r.Client.Delete(ctx, scene.ConfigMaps, "default", "one", "")
			},
			want: known,
		},
		"to read, which is a need too": {
			verb: "get", resource: scene.ConfigMaps,
			ask: func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.Get(ctx, scene.ConfigMaps, "default", "one")
				return err
			},
			want: `needs: [{resource: configmaps, verbs: [get]}]`,
		},
		"to list": {
			verb: "list", resource: scene.ConfigMaps,
			ask: func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.List(ctx, scene.ConfigMaps, "default", "")
				return err
			},
			want: `needs: [{resource: configmaps, verbs: [list]}]`,
		},
		"to apply, with its group": {
			verb: "patch", resource: scene.Deployments,
			ask: func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.Apply(ctx, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "one", "namespace": "default"}})
				return err
			},
			want: `(dsl.Needs("patch", "deployments.apps") in Go)`,
		},
		"on the object itself, whose finalizer a child needs that stays": {
			verb: "patch", resource: scene.Foos, options: []dsl.Option{dsl.Needs("get,create,patch", "configmaps")}, causes: []dsl.Cause{dsl.Reconcile},
			ask: func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, configMap, dsl.ChildSpec{OnDelete: dsl.OrphanChild})
				return err
			},
			want: `declare it with needs: [{resource: foos.example.com, verbs: [patch]}] (dsl.Needs("patch", "foos.example.com") in Go)`,
		},
		"on a subresource": {
			verb: "patch", resource: scene.Foos + "/scale",
			ask: func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.MergePatch(ctx, scene.Foos, "default", "web", map[string]any{"spec": map[string]any{"replicas": int64(2)}}, "scale")
				return err
			},
			want: `dsl.Needs("patch", "foos.example.com/scale")`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					if test.causes != nil {
						foo.Owns(scene.ConfigMaps)
					}
					causes := test.causes
					if causes == nil {
						causes = []dsl.Cause{dsl.Create}
					}
					foo.On(causes, "ask", func(ctx context.Context, r *dsl.Request) error {
						err := test.ask(ctx, r)
						if !apierrors.IsForbidden(err) {
							t.Errorf("the error is %v, want one that a right is missing", err)
							return dsl.Permanent(scene.ErrAgain)
						}
						j.Add(err.Error())
						return dsl.Permanent(err)
					}, test.options...)
				},
				Play: func(s *scene.Stage) {
					s.Forbid(test.verb, test.resource)
					s.Launch()
					s.Create(scene.Web)
					s.Settle()
					if got := strings.Join(s.Take(), "\n"); !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
						t.Errorf("the error is\n%s\nwant in it\n%s", got, test.want)
					}
				},
			})
		})
	}
}

// TestWhatElseIsForbiddenIsNoMissingRight: a quota, or a webhook, says itself what to do.
func TestWhatElseIsForbiddenIsNoMissingRight(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("ask", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.Create(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "default"}})
				j.Add(err.Error())
				return dsl.Permanent(err)
			})
		},
		Play: func(s *scene.Stage) {
			s.FailNext("create", scene.ConfigMaps, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", scene.ErrAgain))
			s.Launch()
			s.Create(scene.Web)
			s.Called(`configmaps "one" is forbidden: not yet`)
		},
	})
}

// TestTheEnginesOwnWritesAreDeclared: the engine's own writes are declared by its settings.
func TestTheEnginesOwnWritesAreDeclared(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("make", j.Note("make")) },
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Forget()
			s.Forbid("patch", scene.Foos)
			s.Create(scene.Web)
			s.Advance(time.Second) // the first refusal may be that of a server which starts
			events := s.Events()
			refused := slices.ContainsFunc(events, func(e kit.Event) bool {
				return e.Reason == "WriteRefused" && strings.HasSuffix(e.Note, "; allow it to the operator: operator rbac prints the roles")
			})
			if !refused {
				t.Errorf("events %+v", events)
			}
		},
	})
}
