// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// fooDeployment keeps one Deployment for each Foo of kubernetes/sample-controller, with the Foo's number of
// replicas. It reverts changes and deletions by others. It does not touch a Deployment of that name that the Foo
// does not own.
func fooDeployment(ctx context.Context, r *dsl.Request) error {
	var spec struct {
		DeploymentName string `json:"deploymentName"`
		Replicas       int64  `json:"replicas"`
	}
	if err := r.Into("spec", &spec); err != nil {
		return dsl.Permanent(err)
	}
	if spec.DeploymentName == "" {
		return dsl.Permanent(errors.New("spec.deploymentName must be set"))
	}
	labels := map[string]any{"app": "nginx", "controller": r.Object.GetName()}
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"name": spec.DeploymentName},
		"spec": map[string]any{
			"replicas": spec.Replicas,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"containers": []any{map[string]any{"name": "nginx", "image": "nginx:latest"}},
				},
			},
		},
	})
	if errors.Is(err, dsl.ErrNotOwned) {
		r.Events.Event(dsl.Warning, "ErrResourceExists", "Resource %q already exists and is not managed by Foo", spec.DeploymentName)
		return err
	}
	return err
}

// The permissions for applying a child: get, for a child that the cache does not have, and those of server-side
// apply, which is create for a new child and patch for an existing one.
const (
	fooVerbs    = "get,create,patch"
	fooChildren = "deployments.v1.apps"
)

var statusReplicas = dsl.Path{"status", "availableReplicas"}

// FooStatus reports how many replicas of a Foo's Deployment are available.
func FooStatus(_ context.Context, r *dsl.Request) error {
	name, _ := dsl.MustParsePath("spec.deploymentName").In(r.Object.Object)
	deployment, err := r.Children.Get("deployments.v1.apps", fmt.Sprint(name))
	if err != nil || deployment == nil {
		return err // fooDeployment reports a missing Deployment
	}
	available, found := statusReplicas.In(deployment.Object)
	if !found {
		available = int64(0)
	}
	if reported, known := statusReplicas.In(r.Object.Object); !known || reported != available {
		r.Patch.SetStatus("availableReplicas", available)
		r.Events.Event(dsl.Normal, "Synced", "Foo synced successfully")
	}
	return nil
}

// fooFarewell logs that a Foo is gone. Its Deployment is garbage-collected by the owner reference.
func fooFarewell(_ context.Context, r *dsl.Request) error {
	r.Log.Info("Foo is gone, and its Deployment goes with it")
	return nil
}

// Foo registers the functions of samples/foo.
func Foo(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "foo.Deployment", Func: fooDeployment, Doc: "keeps a Foo's Deployment as the Foo asks for",
		Needs: []dsl.Need{dsl.MustParseNeed(fooVerbs, fooChildren)},
	})
	r.Function(dsl.Function{
		Name: "foo.Status", Func: FooStatus, Doc: "reports the available replicas of a Foo's Deployment",
		Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
	r.Function(dsl.Function{Name: "foo.Farewell", Func: fooFarewell, Doc: "says that a Foo is gone", Needs: []dsl.Need{}})
}

// FooOperator is samples/foo/operator.yaml written in Go.
func FooOperator() *dsl.Operator {
	op := dsl.New("foo")
	op.Resource("foos.v1alpha1.samplecontroller.k8s.io", func(foo *dsl.Resource) {
		foo.Owns("deployments.v1.apps")
		foo.OnReconcile("deployment", fooDeployment, dsl.Needs(fooVerbs, fooChildren))
		foo.OnReconcile("status", FooStatus, dsl.Needs("patch", "self/status"))
		foo.OnDelete("farewell", fooFarewell, dsl.NoFinalizer(), dsl.WithNeeds())
	})
	return op
}
