// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// MakesConfigMapB is a handler that makes the ConfigMap b.
func MakesConfigMapB(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}, "data": map[string]any{"a": "b"},
	})
	return err
}

// KeepsConfigMaps is a handler that keeps spec.size ConfigMaps, and deletes others.
func KeepsConfigMaps(ctx context.Context, r *dsl.Request) error {
	size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
	wanted := map[string]bool{}
	for i := range size {
		name := fmt.Sprintf("web-%d", i)
		wanted[name] = true
		if _, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"of": r.Object.GetName()},
		}); err != nil {
			return err
		}
	}
	found, err := r.Children.List(ConfigMaps)
	for _, o := range found {
		if err == nil && !wanted[o.GetName()] {
			err = r.Children.Delete(ctx, ConfigMaps, o.GetName())
		}
	}
	return err
}

// MakesShared returns a handler that makes the ConfigMap shared, with a text, if a field of the spec has that name.
func MakesShared(field, text string) dsl.Func {
	return func(c context.Context, r *dsl.Request) error {
		if name, _ := dsl.MustParsePath("spec." + field).In(r.Object.Object); name != "shared" {
			return nil
		}
		_, err := r.Children.Apply(c, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared"}, "data": map[string]any{"from": text},
		})
		return err
	}
}

// describeChildren formats children for a journal.
func describeChildren(children []dsl.ChildObject) string {
	var out []string
	for _, c := range children {
		text := fmt.Sprintf("%s/%s/%s=%s/%s:%s,%s", c.Handler, c.Name, c.Key, c.Object.GetNamespace(), c.Object.GetName(), c.Ownership, c.OnDelete)
		if c.Object.GetDeletionTimestamp() != nil {
			text += ",going"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// NotesChildren returns a handler that notes all children.
func NotesChildren(j *kit.Journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		all, err := r.Children.All()
		if err != nil {
			j.Add("error: " + err.Error())
			return dsl.Temporary(err, time.Second)
		}
		j.Add(describeChildren(all))
		return nil
	}
}

// OwnsDeployment declares a level-triggered handler, child, that keeps a Deployment.
func OwnsDeployment(foo *dsl.Resource, j *kit.Journal) {
	foo.Owns(Deployments)
	foo.OnReconcile("child", j.Note("child", KeepsDeployment))
}

// KeepsConfigMap returns a handler that keeps the ConfigMap web.
func KeepsConfigMap(spec dsl.ChildSpec) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default"},
		}, spec)
		return err
	}
}

// WritesElsewhere is a handler that writes to another object.
func WritesElsewhere(ctx context.Context, r *dsl.Request) error {
	_, err := r.Client.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other", "namespace": "default"},
	})
	return err
}

// KeepsBar is a handler that keeps a Bar of the object's name.
func KeepsBar(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": r.Object.GetName()},
	})
	return err
}

// KeepsDeployment is a handler that keeps a Deployment of the object's name, with spec.size replicas.
func KeepsDeployment(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, DeploymentNamed(r.Object.GetName(), ValueAt(r.Object, "spec.size")))
	return err
}
