// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/builtin"
)

// schemas are those of the built-in kinds.
type schemas struct{ *builtin.Kinds }

func (schemas) Custom(*unstructured.Unstructured) (map[string]server.Schema, error) {
	return nil, nil
}

// endpoint is a server with the schemas.
type endpoint struct {
	*server.Server
	client dynamic.Interface
}

func newServer(t testing.TB) endpoint {
	t.Helper()
	s := server.New(server.Settings{AllKinds: true, Admission: true, Controllers: true, Schemas: schemas{builtin.New()}})
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://memory", Transport: s.Admin(), QPS: -1})
	if err != nil {
		t.Fatalf("making the client: %v", err)
	}
	out := endpoint{s, client}
	out.create(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "builtins"}})
	return out
}

// reach returns the client for objects of a kind.
func (s endpoint) reach(t testing.TB, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	served, found := s.LookupKind(o.GroupVersionKind())
	if !found {
		t.Fatalf("%s is not served", o.GroupVersionKind())
	}
	if served.Namespaced {
		return s.client.Resource(served.GVR).Namespace("builtins")
	}
	return s.client.Resource(served.GVR)
}

// create creates an object and returns what is stored.
func (s endpoint) create(t testing.TB, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: object}
	out, err := s.reach(t, o).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("creating %s: %v", o.GetName(), err)
	}
	return out
}
