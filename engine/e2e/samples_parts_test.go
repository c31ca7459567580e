// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// shopRules are what the sample shop needs.
func shopRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		cluster.Rule("samples.handwerk.dev", "shops", "get", "list", "watch"), cluster.Rule("samples.handwerk.dev", "shops/status", "patch"),
		made("apps", "deployments"), made("", "services"),
	}
}

// corner is an object of the sample shop.
func corner() *unstructured.Unstructured {
	return sample("Shop", "corner", map[string]any{
		"frontend": map[string]any{"image": "front:1", "replicas": int64(2)}, "backend": map[string]any{"image": "back:1"},
	})
}

// TestShop holds that the two uses of the part in the sample shop keep children of their own.
func TestShop(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "shop", []string{ns}, shopRules())
	shops, workloads, services := plane.Objects("shops.v1alpha1.samples.handwerk.dev", ns), plane.Objects(deployments, ns), plane.Objects("services.v1", ns)
	shops.Create(t, corner())
	ready := func(o *unstructured.Unstructured) bool { return cluster.Condition(o, "Ready") == "True" }
	shop := shops.Await(t, "corner", "readiness", ready)
	if got := field(shop, "status", "url"); got != "http://corner-frontend."+ns {
		t.Errorf("url is %v", got)
	}
	for name, mark := range map[string]string{"corner-backend": "backend/back_deployment", "corner-frontend": "frontend/front_deployment"} {
		if got := workloads.Get(t, name).GetAnnotations()["shop.handwerk.dev/child"]; got != mark {
			t.Errorf("Deployment %s has the mark %q, want %q", name, got, mark)
		}
	}
	front := workloads.Get(t, "corner-frontend")
	shops.Patch(t, "corner", `{"spec":{"backend":{"image":"back:2"}}}`)
	workloads.Await(t, "corner-backend", "the new image", func(o *unstructured.Unstructured) bool { return strings.Contains(asJSON(t, o), "back:2") })
	services.Delete(t, "corner-backend")
	services.Await(t, "corner-backend", "that it is back", func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() == nil })
	shops.Await(t, "corner", "readiness", func(o *unstructured.Unstructured) bool {
		return ready(o) && !strings.Contains(asJSON(t, o), `"Unknown"`)
	})
	if after := workloads.Get(t, "corner-frontend"); after.GetGeneration() != front.GetGeneration() || after.GetUID() != front.GetUID() {
		t.Errorf("the frontend is another: %s", asJSON(t, after))
	}
	shops.Delete(t, "corner")
	for _, name := range []string{"corner-backend", "corner-frontend"} {
		workloads.AwaitGone(t, name)
		services.AwaitGone(t, name)
	}
}

// mount writes the files of the sample shop as the kubelet writes a ConfigMap into a volume: with links to a link that it
// replaces. The part has the text more in its end.
func mount(t *testing.T, dir, version, more string) {
	t.Helper()
	for _, name := range []string{"operator.yaml", "parts/web.yaml"} {
		data, err := os.ReadFile(filepath.Join("../../samples/shop", name))
		if err != nil {
			t.Fatal(err)
		}
		if name != "operator.yaml" {
			data = append(data, more...)
		}
		file := filepath.Join(dir, version, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operator.yaml", "parts"} {
		if err := os.Symlink("..data/"+name, filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
}

// TestAPartInAMountedConfigMap holds that a process keeps the part that it began with while the kubelet changes the volume,
// and that the next process keeps the same children by the new part. One with a fault in the part does not begin.
func TestAPartInAMountedConfigMap(t *testing.T) {
	t.Parallel()
	ns, dir := plane.Namespace(t), t.TempDir()
	user := plane.User("mounted-shop")
	user.AllowIn(t, ns, append(shopRules(), eventRule())...)
	launch := func() *cluster.Operator {
		return plane.Operator(t, cluster.Launch{Config: user.Config(), Args: []string{"run", "--config", dir, "-n", ns}})
	}
	mount(t, dir, "..2026_1", "")
	first := launch()
	shops, services := plane.Objects("shops.v1alpha1.samples.handwerk.dev", ns), plane.Objects("services.v1", ns)
	shops.Create(t, corner())
	before := services.Await(t, "corner-backend", "the Service", func(*unstructured.Unstructured) bool { return true })

	mount(t, dir, "..2026_2", "      sessionAffinity: ClientIP\n")
	services.Delete(t, "corner-backend")
	same := services.Await(t, "corner-backend", "that it is back", func(o *unstructured.Unstructured) bool { return o.GetUID() != before.GetUID() })
	if got := field(same, "spec", "sessionAffinity"); got != "None" {
		t.Errorf("the process that runs makes it with %v", got)
	}
	if exit := first.Stop(t); exit.Code != 0 {
		t.Errorf("it ended with exit code %d", exit.Code)
	}
	second := launch()
	for _, name := range []string{"corner-backend", "corner-frontend"} {
		services.Await(t, name, "the new part", func(o *unstructured.Unstructured) bool { return field(o, "spec", "sessionAffinity") == "ClientIP" })
	}
	if after := services.Get(t, "corner-backend"); after.GetUID() != same.GetUID() {
		t.Error("the Service was made again")
	}
	if exit := second.Stop(t); exit.Code != 0 {
		t.Errorf("it ended with exit code %d", exit.Code)
	}

	mount(t, dir, "..2026_3", "aplly: {}\n")
	third := launch()
	third.Await(t, "parts/web.yaml:34:1: aplly: unknown field")
	if exit := third.Wait(t); exit.Code == 0 {
		t.Error("it began with a fault")
	}
}
