// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// tableRow is a row of the page's table of what is put back.
type tableRow struct{ does, it, says string }

// tableOf reads the table.
func tableOf(t *testing.T) (rows []tableRow) {
	t.Helper()
	page, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| somebody does this | it | the log says |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/semantics.md has no table of what is put back")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("a row has %d cells: %s", len(cells), line)
		}
		rows = append(rows, tableRow{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.Trim(strings.TrimSpace(cells[2]), "`")})
	}
	return rows
}

// deed is what a row of the table is about.
type deed struct {
	resource string
	acts     []act
	see      see
	// spec is more of the object.
	spec string
}

// handiwork are those of the table, by its first column.
func handiwork() map[string]deed {
	more := pod(`{"containers":[{"name":"more","image":"i"}]}`)
	scaled := []act{{"kubectl", merge, `{"spec":{"replicas":2}}`, "scale"}}
	return map[string]deed{
		"`kubectl edit service web`, port 81 in the place of 80": {services, []act{{"kubectl-edit", strategic,
			`{"spec":{"$setElementOrder/ports":[{"port":81}],"ports":[{"name":"http","port":81,"targetPort":"http"},{"port":80,"$patch":"delete"}]}}`, ""}}, ports, ""},
		"`kubectl patch service web`, another port": {services, []act{{"kubectl-patch", strategic,
			`{"spec":{"ports":[{"name":"more","port":81}]}}`, ""}}, ports, ""},
		"`kubectl patch service web`, another label in the selector": {services, []act{{"kubectl-patch", strategic,
			`{"spec":{"selector":{"more":"x"}}}`, ""}}, at("spec", "selector"), ""},
		"`kubectl edit configmap web`, another key":                          {configMaps, []act{{"kubectl-edit", strategic, `{"data":{"more":"x"}}`, ""}}, at("data"), ""},
		"`kubectl patch deployment web`, another container":                  {deployments, []act{{"kubectl-patch", strategic, more, ""}}, names("containers"), ""},
		"`kubectl edit deployment web`, `hostNetwork: true`":                 {deployments, []act{{"kubectl-edit", strategic, pod(`{"hostNetwork":true}`), ""}}, at("spec", "template", "spec", "hostNetwork"), ""},
		"`kubectl set image deployment web`":                                 {deployments, []act{{"kubectl-set", strategic, pod(`{"containers":[{"name":"app","image":"j"}]}`), ""}}, at("spec", "template", "spec", "containers"), ""},
		"`kubectl scale deployment web`":                                     {deployments, scaled, at("spec", "replicas"), ""},
		"`kubectl scale deployment web`, where the object has `maxReplicas`": {deployments, scaled, at("spec", "replicas"), `,"maxReplicas":3`},
		"an autoscaler scales the Deployment":                                {deployments, []act{{"kube-controller-manager", merge, `{"spec":{"replicas":2}}`, "scale"}}, at("spec", "replicas"), `,"maxReplicas":3`},
		"`kubectl rollout restart deployment web`": {deployments, []act{{"kubectl-rollout", strategic,
			`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`, ""}}, at("spec", "template", "metadata", "annotations"), ""},
		"`kubectl annotate service web`, `kubectl label service web`": {services, []act{
			{"kubectl-annotate", merge, `{"metadata":{"annotations":{"more":"x"}}}`, ""}, {"kubectl-label", merge, `{"metadata":{"labels":{"more":"x"}}}`, ""}},
			func(o *unstructured.Unstructured) any { return o.GetAnnotations()["more"] + o.GetLabels()["more"] }, ""},
		"`kubectl apply` of the ConfigMap by another person, with another key": {configMaps, []act{{"kubectl-client-side-apply", strategic,
			`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"data":{"more":"x"}}`, ""}}, at("data"), ""},
		"`kubectl apply --server-side` of the ConfigMap by another person, with another key": {configMaps, []act{{"kubectl", apply,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"more":"x"}}`, ""}}, at("data"), ""},
		"a mutating webhook adds a container to the Deployment": {deployments, []act{{"injector", strategic, more, ""}}, names("containers"), ""},
		"`kubectl delete deployment web`":                       {deployments, nil, func(o *unstructured.Unstructured) any { return o.GetUID() }, ""},
	}
}

// TestWhatIsPutBackIsAsThePageSays runs each row of the table in docs/semantics.md.
func TestWhatIsPutBackIsAsThePageSays(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	s := runSample(t, "webapp", []string{ns}, []rbacv1.PolicyRule{
		cluster.Rule("samples.handwerk.dev", "webapps", "get", "list", "watch"),
		cluster.Rule("samples.handwerk.dev", "webapps/status", "patch"),
		made("", "configmaps"), made("", "services"), made("apps", "deployments"),
		made("autoscaling", "horizontalpodautoscalers"), made("networking.k8s.io", "ingresses"),
	})
	webapps, known := plane.Objects("webapps.v1alpha1.samples.handwerk.dev", ns), handiwork()
	for i, row := range tableOf(t) {
		t.Run(row.does, func(t *testing.T) {
			d, found := known[row.does]
			if !found {
				t.Fatalf("no test tries row %d", i)
			}
			t.Parallel()
			web := "web" + string(rune('a'+i))
			webapps.Send(t, web, apply, `{"apiVersion":"samples.handwerk.dev/v1alpha1","kind":"WebApp","metadata":{"name":"`+web+`"},`+
				`"spec":{"image":"i","replicas":1,"env":{"A":"x"}`+d.spec+`}}`)
			objects := plane.Objects(d.resource, ns)
			before := objects.Await(t, web, "being made", there)
			awaitPasses(t, ns, web)
			said := len(saidOf(s.program.Lines, before.GetKind(), ns, web))
			mark, want := plane.Mark(t), d.see(before)
			for _, act := range d.acts {
				act.on(t, objects, web)
			}
			if d.acts == nil {
				objects.Delete(t, web)
				want = nil
			}
			if row.it == "stays" {
				if want = d.see(objects.Get(t, web)); same(t, want, d.see(before)) {
					t.Fatal("the act changes nothing")
				}
			} else {
				s.program.Await(t, strings.ReplaceAll(row.says, "shop/web", ns+"/"+web))
				objects.Await(t, web, row.it, func(o *unstructured.Unstructured) bool { return want == nil || same(t, d.see(o), want) })
			}
			awaitPasses(t, ns, web)
			lines := saidOf(s.program.Lines, before.GetKind(), ns, web)[said:]
			if row.says == "" && len(lines) > 0 || row.says != "" && len(lines) != 1 {
				t.Errorf("the log says\n%s", strings.Join(lines, "\n"))
			}
			if writes := plane.Writes(t, s.user.Name, mark).Of(objects.Name.Resource, web); row.it == "stays" && len(writes) > 0 {
				t.Errorf("it was written to:\n%s", writes)
			}
			if now := d.see(objects.Get(t, web)); want != nil && !same(t, now, want) {
				t.Errorf("in the end it is %v, want %v", now, want)
			}
		})
		delete(known, row.does)
	}
	for does := range known {
		t.Errorf("the page has no row for %s", does)
	}
}

// awaitPasses waits for two reconciles over a WebApp.
func awaitPasses(t *testing.T, ns, web string) {
	t.Helper()
	for _, host := range []string{"a.example.com", "b.example.com"} {
		plane.Objects("webapps.v1alpha1.samples.handwerk.dev", ns).Patch(t, web, `{"spec":{"host":"`+host+`"}}`)
		plane.Objects("ingresses.v1.networking.k8s.io", ns).Await(t, web, host, func(o *unstructured.Unstructured) bool {
			return strings.Contains(asJSON(t, o.Object), host)
		})
	}
}

// saidOf are the lines about writes to a child.
func saidOf(lines *cluster.Lines, kind, ns, web string) []string {
	return lines.With(" " + kind + " " + ns + "/" + web)
}
