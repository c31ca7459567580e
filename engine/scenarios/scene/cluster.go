// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RaiseVersions creates so many Secrets, so that the cluster's resource versions grow.
func (s *Stage) RaiseVersions(name string, n int) {
	s.T.Helper()
	for i := range n {
		s.Create(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s-%d}}`, name, i))
	}
}

// ForbidWatching takes the rights to list and watch a resource away, and ends its watches.
func (s *Stage) ForbidWatching(resource string) {
	s.T.Helper()
	s.Forbid("list", resource)
	s.Forbid("watch", resource)
	s.CutWatches(resource)
}

// AllowWatching is the opposite of ForbidWatching.
func (s *Stage) AllowWatching(resource string) {
	s.Allow("list", resource)
	s.Allow("watch", resource)
}

// RefuseLargeLimits makes the server refuse Foos whose spec.limit or status.limit is larger than 500.
func (s *Stage) RefuseLargeLimits() {
	s.Refuse(Foos, func(o *unstructured.Unstructured) error {
		for _, part := range []string{"spec", "status"} {
			if n, _ := ValueAt(o, part+".limit").(int64); n > 500 {
				return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(),
					field.ErrorList{field.Invalid(field.NewPath(part, "limit"), n, "must be at most 500")})
			}
		}
		return nil
	})
}

// CreateElsewhere creates the namespace elsewhere, for children outside of their owner's namespace.
func (s *Stage) CreateElsewhere() {
	s.T.Helper()
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}`)
}

// ChangeConfigMap changes the ConfigMap web of a namespace.
func (s *Stage) ChangeConfigMap(namespace string, change func(*unstructured.Unstructured)) {
	s.T.Helper()
	s.Settle()
	s.Update(ConfigMaps, namespace, "web", change)
}

// RollOut sets status.replicas of the Deployment web, as its controller would.
func (s *Stage) RollOut(n int64) {
	s.T.Helper()
	s.Update(Deployments, "default", "web", func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"replicas": n}
	})
}

// RoundTripper is a function as an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
