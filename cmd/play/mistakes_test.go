// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// mistakes are the case that operator test runs, too.
type mistakes struct {
	Cases []struct {
		Given []map[string]any
		Steps []struct {
			Create  map[string]any
			Patch   map[string]any
			Refused string
		}
	}
}

// TestMistakesAreRefused holds that a play refuses the mistakes that operator test refuses, in the words of a real API server.
func TestMistakesAreRefused(t *testing.T) {
	const shop = "../../sandbox/cases/testdata/shop"
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(shop, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var all mistakes
	if err := yaml.Unmarshal([]byte(read("mistakes_test.yaml")), &all); err != nil || len(all.Cases) != 1 || len(all.Cases[0].Steps) != 13 {
		t.Fatalf("want one case with thirteen mistakes, found %+v (%v)", all, err)
	}
	s := newStage(t)
	s.write("operator.yaml", read("operator.yaml"))
	s.write("example.yaml", read("order.yaml"))
	s.settings.Load = func() (*dsl.Operator, error) {
		registry := handlers.Standard()
		registry.Function(dsl.Function{Name: "shop.Mail", Params: map[string]any{}, Func: func(context.Context, *dsl.Request) error { return nil }})
		return config.Load([]string{s.dir}, registry)
	}
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^orders/one +play +created$`)

	resources := map[string]schema.GroupVersionResource{}
	create := func(tree map[string]any) error {
		o := &unstructured.Unstructured{Object: tree}
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		resources[gvr.Resource] = gvr
		_, err := client.Resource(gvr).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	for _, given := range all.Cases[0].Given {
		if err := create(given); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range all.Cases[0].Steps {
		refused := func(err error) {
			if err == nil || !strings.Contains(err.Error(), step.Refused) {
				t.Errorf("want that this is refused: %s\nfound %v", step.Refused, err)
			}
		}
		if step.Create != nil {
			refused(create(step.Create))
		}
		for name, fields := range step.Patch {
			resource, name, _ := strings.Cut(name, "/")
			body, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Resource(resources[resource]).Namespace("default").
				Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
			refused(err)
		}
	}
	s.end()
}
