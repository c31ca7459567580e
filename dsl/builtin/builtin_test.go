// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/openapi"
)

// TestEveryKindThatCanBeWatchedHasASchema holds also that each schema has what it refers to.
func TestEveryKindThatCanBeWatchedHasASchema(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(k.index.Kinds); n < 70 {
		t.Errorf("there are %d kinds, want more", n)
	}
	for _, e := range k.index.Kinds {
		if s := k.OfKind(e.GroupVersionKind); s == nil && e.Watched || s != nil && len(s.Properties) == 0 {
			t.Errorf("%s has no schema, or one without fields", e.GroupVersionKind)
		}
	}
	if err := k.Err(); err != nil {
		t.Error(err)
	}
}

func TestASchemaSaysWhatThereCanBe(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	s := k.OfResource(schema.GroupVersionResource{Group: "apps", Resource: "deployments"})
	for _, name := range []string{"spec", "template", "spec"} {
		field, found := s.Properties[name]
		if !found {
			t.Fatalf("there is no %s in %v", name, s.Properties)
		}
		s = &field
	}
	if _, found := s.Properties["containers"]; !found {
		t.Error("a Deployment has no containers")
	}
	if priority, found := k.OfKind(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}).Properties["description"]; !found || len(priority.Type) == 0 {
		t.Error("a field that is called description is left out with what is for people")
	}
	if len(k.files) >= 10 {
		t.Errorf("%d files were read for three kinds: want those that they need", len(k.files))
	}
	if got := k.OfKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Nothing"}); got != nil {
		t.Errorf("an unknown kind has the schema %v", got)
	}
}

// TestAGroupIsKubernetesOwn holds what the core group and others are.
func TestAGroupIsKubernetesOwn(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]bool{"": true, "apps": true, "rbac.authorization.k8s.io": true, "example.com": false, "gateway.networking.k8s.io": false} {
		if got := k.Own(group); got != want {
			t.Errorf("Own(%q) = %t", group, got)
		}
	}
}

// BenchmarkOpen says what it costs to know which kinds there are, BenchmarkDeployment a schema with that, and
// BenchmarkAll all of them.
func BenchmarkOpen(b *testing.B) { measure(b, func(*Kubernetes) {}) }

func BenchmarkDeployment(b *testing.B) {
	measure(b, func(k *Kubernetes) {
		k.OfKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	})
}

func BenchmarkAll(b *testing.B) {
	measure(b, func(k *Kubernetes) {
		for _, e := range k.index.Kinds {
			k.OfKind(e.GroupVersionKind)
		}
	})
}

// measure also reports what is held after that.
func measure(b *testing.B, with func(*Kubernetes)) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var held []*Kubernetes
	for b.Loop() {
		k, err := Open()
		if err != nil {
			b.Fatal(err)
		}
		with(k)
		held = append(held, k)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(held)), "held-B/op")
	runtime.KeepAlive(held)
}

func TestQuantitiesAreToldFromOtherTextsAndNumbers(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	claim := k.OfResource(schema.GroupVersionResource{Resource: "persistentvolumeclaims"}).Properties["spec"]
	requests := claim.Properties["resources"].Properties["requests"]
	if !openapi.IsQuantity(requests.AdditionalProperties.Schema) {
		t.Error("a request for storage is no quantity")
	}
	service := k.OfResource(schema.GroupVersionResource{Resource: "services"}).Properties["spec"]
	if port := service.Properties["ports"].Items.Schema.Properties["targetPort"]; openapi.IsQuantity(&port) {
		t.Error("a port is a quantity")
	}
}

func TestAnEnumerationHasItsValues(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	kind := k.Enumerations("io.k8s.api.apps.v1.DeploymentStrategy").Properties["type"]
	if len(kind.Enum) != 2 || !strings.HasPrefix(kind.Description, Enumeration) {
		t.Errorf("the strategy of a Deployment is %v", kind)
	}
	for _, name := range []string{"io.k8s.api.apps.v1.Nothing", "com.example.v1.Foo"} {
		if got := k.Enumerations(name); got != nil {
			t.Errorf("%s is %v", name, got)
		}
	}
	if k.Err() != nil {
		t.Error(k.Err())
	}
}
