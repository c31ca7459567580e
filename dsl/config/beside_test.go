// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
)

// shopSchema is a resource that has a schema and no handlers.
const shopSchema = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: shop}
resources:
  - resource: shops.v1.example.com
    resync: 10m
    schema:
      kind: Shop
      spec: {title: string}
`

func inGo(context.Context, *dsl.Request) error { return nil }

// greet declares a handler of shops.
func greet(name string) func(*dsl.Operator) {
	return func(op *dsl.Operator) {
		op.Resource(name, func(shop *dsl.Resource) { shop.OnCreate("greet", inGo) })
	}
}

func TestASchemaInYAMLAndHandlersInGoAreOneResource(t *testing.T) {
	for name, resource := range map[string]string{"as it is spelt in YAML": "shops.v1.example.com", "without a version": "shops.example.com"} {
		t.Run(name, func(t *testing.T) {
			op, err := config.Parse("operator.yaml", []byte(shopSchema), actions.NewRegistry(), greet(resource))
			if err != nil {
				t.Fatal(err)
			}
			all := op.Resources()
			if len(all) != 1 || all[0].CRD == nil || all[0].Resync != 10*time.Minute || all[0].Name.String() != "shops.v1.example.com" {
				t.Fatalf("the resources are %+v", all)
			}
			if got := all[0].Handlers(); len(got) != 1 || got[0].ID != "greet" {
				t.Errorf("the handlers are %v", got)
			}
		})
	}
}

func TestAMachineInGoHasItsFieldsInASchemaInYAML(t *testing.T) {
	op, err := config.Parse("operator.yaml", []byte(shopSchema), actions.NewRegistry(), func(op *dsl.Operator) {
		op.Resource("shops.v1.example.com", func(shop *dsl.Resource) {
			shop.Machine(dsl.Machine{States: []dsl.State{{Name: "Open", Terminal: true}}})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(op.Resources()[0].CRD, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{dsl.BookState, dsl.BookSince} {
		path := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", field}
		if _, has, err := unstructured.NestedMap(versions[0].(map[string]any), path...); !has || err != nil {
			t.Errorf("the status has no %s (%v)", field, err)
		}
	}
}

func TestASchemaWithoutHandlersIsAFault(t *testing.T) {
	other := func(op *dsl.Operator) { op.OnStartup("connect", inGo) }
	const faulty = "operator.yaml:5:5: resources[0].handlers: want at least one, here or in Go (none is needed if handlers of another resource read it)"
	for name, test := range map[string]struct {
		yaml   string
		beside []func(*dsl.Operator)
		want   string
	}{
		"with nothing in Go":              {yaml: shopSchema, want: faulty},
		"with something else in Go":       {yaml: shopSchema, beside: []func(*dsl.Operator){other}, want: faulty},
		"with an empty list of handlers":  {yaml: shopSchema + "    handlers: []\n", want: "operator.yaml:10:15: resources[0].handlers: must not be empty"},
		"with handlers under another key": {yaml: shopSchema + "    handlrs: [{id: a}]\n", want: `operator.yaml:10:5: resources[0].handlrs: unknown field (did you mean "handlers"?)`},
		"and something else is at fault": {
			yaml: strings.Replace(shopSchema, "title: string", "title: strng", 1), want: faulty + "\n" +
				`operator.yaml:9:21: resources[0].schema.spec.title: unknown type "strng" (did you mean "string"?)`,
		},
		"and something else is at fault, so Go is not asked": {
			yaml:   strings.Replace(shopSchema, "title: string", "title: strng", 1),
			beside: []func(*dsl.Operator){greet("shops.v1.example.com")},
			want:   `operator.yaml:9:21: resources[0].schema.spec.title: unknown type "strng" (did you mean "string"?)`,
		},
		"with handlers in Go for another version": {
			yaml: shopSchema, beside: []func(*dsl.Operator){greet("shops.v2.example.com")},
			want: "resource shops.v2.example.com: shops.v2.example.com has the same objects as shops.v1.example.com: put the handlers of both under one\n" + faulty,
		},
		"with handlers in Go twice": {
			yaml: shopSchema, beside: []func(*dsl.Operator){greet("shops.v1.example.com"), greet("shops.v1.example.com")},
			want: "resource shops.v1.example.com: shops.v1.example.com is declared twice: put the handlers of both under one",
		},
		"with a faulty handler in Go": {
			yaml: shopSchema, beside: []func(*dsl.Operator){func(op *dsl.Operator) {
				op.Resource("shops.v1.example.com", func(shop *dsl.Resource) { shop.OnCreate("a b", inGo) })
			}},
			want: `resource shops.v1.example.com: handler a b: id: want letters, digits, '-', '_' and '.', at most 63, found "a b"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			op, err := config.Parse("operator.yaml", []byte(test.yaml), actions.NewRegistry(), test.beside...)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s (%v)", err, test.want, op)
			}
		})
	}
}
