// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWhatHandlersHaveReplacedComesBack holds that a cleanup puts back what handlers have replaced, and says which required fields stay
// because their earlier values are lost.
func TestWhatHandlersHaveReplacedComesBack(t *testing.T) {
	const deployments = "deployments.v1.apps"
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: nginx}]}}}}`
	tests := map[string]struct {
		before      func(o *unstructured.Unstructured)
		image, says string
	}{
		"the value comes back":             {func(*unstructured.Unstructured) {}, "nginx", ""},
		"the value is lost, and it stays":  {func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, "forced", `Deployment default/web keeps .spec.template.spec.containers[name="web"].image: the API server requires them`},
		"the note is somebody else's text": {spoil, "forced", "keeps the values of a handler: somebody else has written annotation"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				ctx := context.WithoutCancel(t.Context())
				c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
				op := dsl.New("op")
				op.Resource(foos, func(foo *dsl.Resource) {
					foo.OnReconcile("image", func(ctx context.Context, r *dsl.Request) error {
						containers := []any{map[string]any{"name": "web", "image": "forced"}}
						_, err := r.Targets.Patch(ctx, map[string]any{
							"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
							"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
						}, dsl.TargetSpec{Force: true})
						return err
					})
				})
				c.Refuse(deployments, func(o *unstructured.Unstructured) error {
					if imageOf(o) == nil {
						at := field.NewPath("spec", "template", "spec", "containers").Index(0).Child("image")
						return apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), field.ErrorList{field.Required(at, "")})
					}
					return nil
				})
				c.Apply("others", deployment)
				p := c.Start(op)
				c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}}`)
				c.Advance(time.Minute)
				if err := p.Stop(); err != nil {
					t.Error(err)
				}
				c.Update(deployments, "default", "web", tt.before)
				said := ""
				clean, err := cleanup.New(ctx, op, cleanup.Settings{Config: c.Config(), Namespace: "default", Report: func(text string) { said += text + "\n" }})
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range clean.Remove(ctx, clean.Look(ctx), nil) {
					t.Error(err)
				}
				if image := imageOf(c.Get(deployments, "default", "web")); image != tt.image || (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
					t.Errorf("the image is %v, want %s; it says %q, want %q", image, tt.image, said, tt.says)
				}
			})
		})
	}
}

// imageOf returns the image of a Deployment.
func imageOf(o *unstructured.Unstructured) any {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)["image"]
}

// spoil changes all annotations of an object.
func spoil(o *unstructured.Unstructured) {
	notes := o.GetAnnotations()
	for key := range notes {
		notes[key] = "x"
	}
	o.SetAnnotations(notes)
}
