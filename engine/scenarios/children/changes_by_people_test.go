// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// theirsWithPod is what somebody adds to a child.
const theirsWithPod = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {spec: {hostNetwork: true, containers: [{name: more, image: m}]}}}}`

// keepsPod keeps a Deployment with a container.
func keepsPod(policy dsl.DriftPolicy, allow ...string) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			containers := []any{map[string]any{"name": "web", "image": fmt.Sprintf("i:%v", r.Object.Object["spec"].(map[string]any)["size"])}}
			_, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
			}, dsl.ChildSpec{Drift: policy, Allow: allow})
			return err
		}))
	}
}

// wantPod checks the child's containers and hostNetwork.
func wantPod(s *scene.Stage, want string) {
	s.T.Helper()
	template := child(s).Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	if got := fmt.Sprint(template["containers"], template["hostNetwork"]); got != want {
		s.T.Errorf("the child's pods are %s, want %s", got, want)
	}
}

const twice = "patch deployments default/web"

// TestTheDriftPolicyDecidesWhatPeopleMayAddToAChild: what kubectl adds goes where the policy says so, by two requests, and
// nothing is written for what stays, nor after a restart.
func TestTheDriftPolicyDecidesWhatPeopleMayAddToAChild(t *testing.T) {
	rests := func(s *scene.Stage, pod string) {
		wantPod(s, pod)
		s.Forget()
		s.Process.Kill()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
		wantPod(s, pod)
	}
	const alone, all = "[map[image:i:1 name:web]] ", "[map[image:i:1 name:web] map[image:m name:more]] true"
	add := func(manager string, wrote []string, pod string) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Begin()
			s.Apply(manager, theirsWithPod)
			s.Settle()
			s.Wrote(wrote...)
			rests(s, pod)
		}
	}
	both := []string{twice, twice}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a container goes, a field stays":              {Operator: keepsPod(""), Play: add("kubectl", both, alone+"true")},
		"both go where drift is strict":                {Operator: keepsPod(dsl.DriftStrict), Play: add("kubectl", both, alone+"<nil>")},
		"both stay where drift is ignored":             {Operator: keepsPod(dsl.DriftIgnore), Play: add("kubectl", nil, all)},
		"both stay where another manager adds":         {Operator: keepsPod(""), Play: add("injector", nil, all)},
		"they go where it adds, and drift is strict":   {Operator: keepsPod(dsl.DriftStrict), Play: add("injector", both, alone+"<nil>")},
		"they stay where it is allowed":                {Operator: keepsPod(dsl.DriftStrict, "injector"), Play: add("injector", nil, all)},
		"they go where another one is allowed":         {Operator: keepsPod(dsl.DriftStrict, "injector"), Play: add("injectors", both, alone+"<nil>")},
		"they stay where Kubernetes itself adds":       {Operator: keepsPod(dsl.DriftStrict), Play: add("kube-controller-manager", nil, all)},
		"both stay where the hand is a light one":      {Operator: keepsPod(""), Play: add("kubectl-label", nil, all)},
		"they go where it is one, and drift is strict": {Operator: keepsPod(dsl.DriftStrict), Play: add("kubectl-label", both, alone+"<nil>")},
		"what a controller sets as well stays, and costs one attempt": {Operator: keepsPod(""), Play: func(s *scene.Stage) {
			s.Begin()
			s.Apply("injector", theirsWithPod)
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			s.Wrote(both...)
			rests(s, all)
		}},
		"what an allowed manager sets as well stays, and costs one attempt": {Operator: keepsPod(dsl.DriftStrict, "injector"), Play: func(s *scene.Stage) {
			s.Begin()
			s.Apply("injector", theirsWithPod)
			s.Apply("curl", theirsWithPod)
			s.Settle()
			s.Wrote(both...)
			rests(s, all)
		}},
		"a manager that adds again and again is met each time": {Operator: keepsPod(dsl.DriftStrict), Play: func(s *scene.Stage) {
			s.Begin()
			for range 3 {
				s.Apply("injector", theirsWithPod)
				s.Settle()
				wantPod(s, alone+"<nil>")
			}
			s.Wrote(twice, twice, twice, twice, twice, twice)
		}},
		"a changed template goes out where drift is ignored": {Operator: keepsPod(dsl.DriftIgnore), Play: func(s *scene.Stage) {
			s.Begin()
			s.Apply("kubectl", theirsWithPod)
			s.Resize(2)
			s.Settle()
			s.Wrote(twice)
			wantPod(s, "[map[image:i:2 name:web] map[image:m name:more]] true")
		}},
		"a process that ends between the two requests leaves it to the next": {Operator: keepsPod(""), Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.CrashAfter(1)
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			wantPod(s, all)
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote(twice)
			wantPod(s, alone+"true")
		}},
		"a conflict has the child looked at again": {Operator: keepsPod(""), Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.Deployments, apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", scene.ErrAgain))
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			rests(s, alone+"true")
		}},
	})
}
