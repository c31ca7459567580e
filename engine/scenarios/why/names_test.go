// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// succeedsAs declares a resource with one handler.
func succeedsAs(s *scene.Stage, resource, handler string) {
	s.Operator.Resource(resource, func(r *dsl.Resource) { r.OnReconcile(handler, scene.Succeeds) })
}

// TestAResourceIsNamedAsInKubectl holds that the singular of a CRD need not be its kind.
func TestAResourceIsNamedAsInKubectl(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		c.Update(scene.CRDs, "", "foos.example.com", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "fu", "spec", "names", "singular")
			_ = unstructured.SetNestedStringSlice(o.Object, []string{"fx"}, "spec", "names", "shortNames")
		})
		c.Advance(time.Minute)
		s := scene.NewStage(t, c)
		succeedsAs(s, scene.Foos, "app")
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		for _, name := range []string{"foos", "foo", "Foo", "fx", "fu", "FX", "foos.example.com", "foos.v1.example.com", "fx.example.com", "fu.example.com", "Foo.v1.example.com", "FOOS"} {
			if _, err := s.Process.Engine().Why(t.Context(), why.Question{Resource: name, Namespace: "default", Name: "web"}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestAKindOfTwoGroupsIsAskedWithItsGroup holds that none of two resources is taken for the one that was meant.
func TestAKindOfTwoGroupsIsAskedWithItsGroup(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: "foos.v1.example.org", Kind: "Foo"})
		s := scene.NewStage(t, c)
		succeedsAs(s, scene.Foos, "app")
		succeedsAs(s, "foos.v1.example.org", "other")
		s.Launch()
		s.Create(`{apiVersion: example.org/v1, kind: Foo, metadata: {name: web}}`)
		s.Settle()
		for name, want := range map[string]string{
			"foo":                 "looking for foo: operator op handles foos.v1.example.com and foos.v1.example.org: name the one that you mean",
			"foo.example.org":     "handler other has nothing to do",
			"foos.v1.example.org": "handler other has nothing to do",
			"foo.example.com":     why.NoObject,
		} {
			got := ""
			a, err := s.Process.Engine().Why(t.Context(), why.Question{Resource: name, Namespace: "default", Name: "web"})
			switch {
			case err != nil:
				got = err.Error()
			case a.Unseen != "":
				got = a.Unseen
			default:
				got = a.Handlers[0].Says
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	})
}
