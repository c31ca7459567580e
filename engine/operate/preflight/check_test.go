// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// slow answers each request after a delay.
type slow struct {
	publisher
	delay time.Duration
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.delay):
		return s.publisher.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// TestAServerThatIsBusyPublishesItsSchemas holds that a schema is only said to be missing when the server said so: not
// when its answer takes longer than the schema of a new CRD needs.
func TestAServerThatIsBusyPublishesItsSchemas(t *testing.T) {
	foo := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Foo"}
	bar := foo.GroupVersion().WithKind("Bar")
	missing := []string{"the API server publishes no schema of kind Bar of example.com/v1; what is said of it was not checked"}
	tests := map[string]struct {
		kind  schema.GroupVersionKind
		delay time.Duration
		want  []string
		took  time.Duration
	}{
		"a schema that is there is taken at once":                      {kind: foo},
		"a schema that is there is awaited on a busy server":           {kind: foo, delay: 20 * time.Second, took: 40 * time.Second},
		"a schema that is missing is awaited":                          {kind: bar, want: missing, took: publishing},
		"a schema that is missing on a busy server is asked for again": {kind: bar, delay: 20 * time.Second, want: missing, took: time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &slow{publisher: publisher{field: "size"}, delay: test.delay}
				client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: transport})
				if err != nil {
					t.Fatal(err)
				}
				own := dsl.Knowledge{OfKind: func(schema.GroupVersionKind) *spec.Schema { return nil }}
				found, begun := newServed(), time.Now()
				found.kinds = append(found.kinds, test.kind)
				if err := found.await(t.Context(), discovery.New(client, nil, nil).Schemas(), own); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, found.unpublished(own)); diff != "" {
					t.Errorf("what is missing (-want +got):\n%s", diff)
				}
				if took := time.Since(begun); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
			})
		})
	}
}
