// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// theirsWithPod is what somebody adds to a child.
const theirsWithPod = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {spec: {hostNetwork: true, containers: [{name: more, image: m}]}}}}`

// keepsPod keeps a Deployment with a container.
func keepsPod(policy dsl.DriftPolicy) func(*dsl.Resource, *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx ctx, r *dsl.Request) error {
			containers := []any{map[string]any{"name": "web", "image": fmt.Sprintf("i:%v", r.Object.Object["spec"].(map[string]any)["size"])}}
			_, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
			}, dsl.ChildSpec{Drift: policy})
			return err
		}))
	}
}

// pod checks the child's containers and hostNetwork.
func (s *stage) pod(want string) {
	s.t.Helper()
	template := s.child().Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	if got := fmt.Sprint(template["containers"], template["hostNetwork"]); got != want {
		s.t.Errorf("the child's pods are %s, want %s", got, want)
	}
}

const twice = "patch deployments default/web"

// TestWhatPeopleAddToAChild: what kubectl adds goes where the policy says so, by two requests, and nothing is written for
// what stays, nor after a restart.
func TestWhatPeopleAddToAChild(t *testing.T) {
	rests := func(s *stage, pod string) {
		s.pod(pod)
		s.Forget()
		s.Process.Kill()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
		s.pod(pod)
	}
	const alone, all = "[map[image:i:1 name:web]] ", "[map[image:i:1 name:web] map[image:m name:more]] true"
	add := func(manager string, wrote []string, pod string) func(*stage) {
		return func(s *stage) {
			s.begin()
			s.Apply(manager, theirsWithPod)
			s.Settle()
			s.Wrote(wrote...)
			rests(s, pod)
		}
	}
	both := []string{twice, twice}
	scenarios(t, map[string]scenario{
		"a container goes, a field stays":              {keepsPod(""), add("kubectl", both, alone+"true")},
		"both go where drift is strict":                {keepsPod(dsl.DriftStrict), add("kubectl", both, alone+"<nil>")},
		"both stay where drift is ignored":             {keepsPod(dsl.DriftIgnore), add("kubectl", nil, all)},
		"both stay where another manager adds":         {keepsPod(dsl.DriftStrict), add("injector", nil, all)},
		"both stay where the hand is a light one":      {keepsPod(""), add("kubectl-label", nil, all)},
		"they go where it is one, and drift is strict": {keepsPod(dsl.DriftStrict), add("kubectl-label", both, alone+"<nil>")},
		"what a controller sets as well stays, and costs one attempt": {keepsPod(""), func(s *stage) {
			s.begin()
			s.Apply("injector", theirsWithPod)
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			s.Wrote(both...)
			rests(s, all)
		}},
		"a changed template goes out where drift is ignored": {keepsPod(dsl.DriftIgnore), func(s *stage) {
			s.begin()
			s.Apply("kubectl", theirsWithPod)
			s.size(2)
			s.Settle()
			s.Wrote(twice)
			s.pod("[map[image:i:2 name:web] map[image:m name:more]] true")
		}},
		"a process that ends between the two requests leaves it to the next": {keepsPod(""), func(s *stage) {
			s.begin()
			s.Process.CrashAfter(1)
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			s.pod(all)
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote(twice)
			s.pod(alone + "true")
		}},
		"a conflict has the child looked at again": {keepsPod(""), func(s *stage) {
			s.begin()
			s.FailNext("patch", deployments, apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errAgain))
			s.Apply("kubectl", theirsWithPod)
			s.Settle()
			rests(s, alone+"true")
		}},
	})
}
