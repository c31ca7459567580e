// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

func TestManyServicesShareOneIngress(t *testing.T) {
	t.Parallel()
	runSample(t, "shared-ingress", nil, []rbacv1.PolicyRule{
		cluster.Rule("", "namespaces", "get", "list", "watch"), cluster.Rule("", "services", "get", "list", "watch"),
		made("networking.k8s.io", "ingresses"),
	})
	ns := plane.Namespace(t)
	ingresses, services := plane.Objects("ingresses.v1.networking.k8s.io", ns), plane.Objects("services.v1", ns)
	for _, name := range []string{"cart", "search"} {
		plane.Apply(t, ns, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, labels: {ingress.example.com/expose: \"true\"}}\nspec: {ports: [{port: 80}]}", name))
	}
	plane.Objects("namespaces.v1", "").Patch(t, ns, `{"metadata":{"labels":{"ingress.example.com/host":"shop.example.com"}}}`)
	has := func(want ...any) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
			var got []any
			for _, rule := range rules {
				paths, _, _ := unstructured.NestedSlice(rule.(map[string]any), "http", "paths")
				for _, path := range paths {
					got = append(got, path.(map[string]any)["path"])
				}
			}
			return cmp.Equal(got, want)
		}
	}
	ingresses.Await(t, "shared", "both paths", has("/cart", "/search"))
	services.Delete(t, "cart")
	ingresses.Await(t, "shared", "one path", has("/search"))
	services.Delete(t, "search")
	ingresses.AwaitGone(t, "shared")
}

func TestARouteOfTheGatewayAPIGetsItsCertificate(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "route-certificate", []string{ns}, []rbacv1.PolicyRule{
		cluster.Rule("gateway.networking.k8s.io", "httproutes", "get", "list", "watch", "patch"), made("cert-manager.io", "certificates"),
	})
	routes, certificates := plane.Objects("httproutes.v1.gateway.networking.k8s.io", ns), plane.Objects("certificates.v1.cert-manager.io", ns)
	plane.Apply(t, ns, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, labels: {certificates.example.com/issuer: letsencrypt}}
spec: {hostnames: [shop.example.com], parentRefs: [{name: public}]}
`)
	says := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return o.GetAnnotations()["certificates.example.com/ready"] == want
		}
	}
	route := routes.Await(t, "shop", "its report", says("false"))
	if diff := cmp.Diff([]any{"shop.example.com"}, field(certificates.Get(t, "shop"), "spec", "dnsNames")); diff != "" {
		t.Errorf("host names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"name": "public"}}, field(route, "spec", "parentRefs")); diff != "" {
		t.Errorf("parents of the route (-want +got):\n%s", diff)
	}
	certificates.Patch(t, "shop", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
	routes.Await(t, "shop", "the report of its certificate", says("true"))
	routes.Patch(t, "shop", `{"metadata":{"labels":{"certificates.example.com/issuer":null}}}`)
	certificates.AwaitGone(t, "shop")
}
