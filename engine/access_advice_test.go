// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestAMissingRightSaysWhatToDo: an error of a handler's request says whether nobody knew that the
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
		"that nobody declared": {
			verb: "create", resource: configMaps,
			ask:  func(ctx ctx, r *dsl.Request) error { _, err := r.Client.Create(ctx, configMap); return err },
			want: `; allow it to the operator: declare it with needs: [{resource: configmaps, verbs: [create]}] (dsl.Needs("create", "configmaps") in Go), and operator rbac prints the roles`,
		},
		"that was declared": {
			verb: "create", resource: configMaps, options: []dsl.Option{dsl.Needs("get,create", "configmaps")},
			ask:  func(ctx ctx, r *dsl.Request) error { _, err := r.Client.Create(ctx, configMap); return err },
			want: known,
		},
		"that was declared for all verbs": {
			verb: "delete", resource: configMaps, options: []dsl.Option{dsl.Needs("*", "configmaps")},
			ask:  func(ctx ctx, r *dsl.Request) error { return r.Client.Delete(ctx, configMaps, "default", "one", "") },
			want: known,
		},
		"to read, which is a need too": {
			verb: "get", resource: configMaps,
			ask: func(ctx ctx, r *dsl.Request) error {
				_, err := r.Client.Get(ctx, configMaps, "default", "one")
				return err
			},
			want: `needs: [{resource: configmaps, verbs: [get]}]`,
		},
		"to list": {
			verb: "list", resource: configMaps,
			ask: func(ctx ctx, r *dsl.Request) error {
				_, err := r.Client.List(ctx, configMaps, "default", "")
				return err
			},
			want: `needs: [{resource: configmaps, verbs: [list]}]`,
		},
		"to apply, with its group": {
			verb: "patch", resource: deployments,
			ask: func(ctx ctx, r *dsl.Request) error {
				_, err := r.Client.Apply(ctx, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "one", "namespace": "default"}})
				return err
			},
			want: `(dsl.Needs("patch", "deployments.apps") in Go)`,
		},
		"on the object itself, whose finalizer a child needs that stays": {
			verb: "patch", resource: foos, options: []dsl.Option{dsl.Needs("get,create,patch", "configmaps")}, causes: []dsl.Cause{dsl.Reconcile},
			ask: func(ctx ctx, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, configMap, dsl.ChildSpec{OnDelete: dsl.OrphanChild})
				return err
			},
			want: `declare it with needs: [{resource: foos.example.com, verbs: [patch]}] (dsl.Needs("patch", "foos.example.com") in Go)`,
		},
		"on a subresource": {
			verb: "patch", resource: foos + "/status",
			ask: func(ctx ctx, r *dsl.Request) error {
				_, err := r.Client.MergePatch(ctx, foos, "default", "web", map[string]any{"status": map[string]any{"x": "y"}}, "status")
				return err
			},
			want: `dsl.Needs("patch", "foos.example.com/status")`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, j *journal) {
					if test.causes != nil {
						foo.Owns(configMaps)
					}
					causes := test.causes
					if causes == nil {
						causes = []dsl.Cause{dsl.Create}
					}
					foo.On(causes, "ask", func(ctx ctx, r *dsl.Request) error {
						err := test.ask(ctx, r)
						if !apierrors.IsForbidden(err) {
							t.Errorf("the error is %v, want one that a right is missing", err)
							return dsl.Permanent(errAgain)
						}
						j.Add(err.Error())
						return dsl.Permanent(err)
					}, test.options...)
				},
				func(s *stage) {
					s.Forbid(test.verb, test.resource)
					s.Launch()
					s.Create(web)
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
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("ask", func(ctx ctx, r *dsl.Request) error {
				_, err := r.Client.Create(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "default"}})
				j.Add(err.Error())
				return dsl.Permanent(err)
			})
		},
		func(s *stage) {
			s.FailNext("create", configMaps, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", errAgain))
			s.Launch()
			s.Create(web)
			s.Called(`configmaps "one" is forbidden: not yet`)
		},
	})
}

// TestWhatIsKeptOnTheObjectIsKnown: the engine's own writes are declared by what it is told to do.
func TestWhatIsKeptOnTheObjectIsKnown(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) { foo.OnCreate("make", j.Note("make")) },
		func(s *stage) {
			s.Launch()
			s.Forget()
			s.Forbid("patch", foos)
			s.Create(web)
			s.Advance(time.Second) // the first refusal may be that of a server which starts
			told := s.Events()
			refused := slices.ContainsFunc(told, func(e enginetest.Event) bool {
				return e.Reason == "WriteRefused" && strings.HasSuffix(e.Note, "; allow it to the operator: operator rbac prints the roles")
			})
			if !refused {
				t.Errorf("told %+v", told)
			}
		},
	})
}
