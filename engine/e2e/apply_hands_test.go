// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// handled are children that people change, under each policy of drift.
const handled = `
map: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-map", labels: {a: b}}, data: {value: x}}
loose:
  drift: ignore
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-loose"}, data: {value: "${self.spec.value}"}}
service: {apiVersion: v1, kind: Service, metadata: {name: "${self.metadata.name}-service"}, spec: {selector: {app: w}, ports: [{port: 80}]}}
web: &web
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "${self.metadata.name}-web"}
  spec:
    selector: {matchLabels: {app: "${self.metadata.name}-web"}}
    template:
      metadata: {labels: {app: "${self.metadata.name}-web"}, annotations: {note: x}}
      spec: {containers: [{name: web, image: i, resources: {limits: {memory: 1Gi}}}]}
sized:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "${self.metadata.name}-sized"}
  spec:
    replicas: 0
    selector: {matchLabels: {app: "${self.metadata.name}-sized"}}
    template:
      metadata: {labels: {app: "${self.metadata.name}-sized"}}
      spec: {containers: [{name: web, image: i}], volumes: [{name: tmp, emptyDir: {}}]}
strict:
  drift: strict
  allow: [sidecars, kubectl-annotate]
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "${self.metadata.name}-strict"}
    spec:
      selector: {matchLabels: {app: "${self.metadata.name}-strict"}}
      template:
        metadata: {labels: {app: "${self.metadata.name}-strict"}}
        spec: {containers: [{name: web, image: i}]}
`

// act is what somebody does to a child.
type act struct {
	// by is the field manager.
	by    string
	kind  types.PatchType
	patch string
	// sub is the subresource, empty for none.
	sub string
}

func (a act) on(t *testing.T, o *cluster.Objects, name string) *unstructured.Unstructured {
	t.Helper()
	var sub []string
	if a.sub != "" {
		sub = []string{a.sub}
	}
	return o.By(a.by).Send(t, name, a.kind, strings.ReplaceAll(a.patch, "NAME", name), sub...)
}

const (
	merge     = types.MergePatchType
	strategic = types.StrategicMergePatchType
	rfc6902   = types.JSONPatchType
	apply     = types.ApplyPatchType
)

// pod is a strategic patch of a Deployment's pods.
func pod(spec string) string { return `{"spec":{"template":{"spec":` + spec + `}}}` }

// see reads what a test is about.
type see func(o *unstructured.Unstructured) any

func at(path ...string) see {
	return func(o *unstructured.Unstructured) any { return field(o, path...) }
}

// names are those of the entries of a list of a Deployment's pods.
func names(list string) see {
	return func(o *unstructured.Unstructured) any {
		entries, _ := field(o, "spec", "template", "spec", list).([]any)
		var out []string
		for _, e := range entries {
			out = append(out, fmt.Sprint(e.(map[string]any)["name"]))
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
}

func container(path ...string) see {
	return func(o *unstructured.Unstructured) any {
		entries, _ := field(o, "spec", "template", "spec", "containers").([]any)
		for _, e := range entries {
			if c, _ := e.(map[string]any); c["name"] == "web" {
				value, _, _ := unstructured.NestedFieldNoCopy(c, path...)
				return value
			}
		}
		return nil
	}
}

func ports(o *unstructured.Unstructured) any {
	entries, _ := field(o, "spec", "ports").([]any)
	var out []any
	for _, e := range entries {
		out = append(out, e.(map[string]any)["port"])
	}
	return fmt.Sprint(out)
}

type handCase struct {
	resource, child string
	act             act
	see             see
	// then is what is seen after the act, want in the end: the same where it stays. Said is what is said about what is
	// undone.
	then, want any
	said       string
}

func handCases() map[string]handCase {
	return map[string]handCase{
		"edit gives a Service another port": {"services.v1", "service",
			act{"kubectl-edit", strategic, `{"spec":{"$setElementOrder/ports":[{"port":81}],"ports":[{"port":81},{"port":80,"$patch":"delete"}]}}`, ""},
			ports, "[81]", "[80]", "spec.ports changed by kubectl-edit"},
		"a patch gives a Service another port": {"services.v1", "service",
			act{"kubectl-patch", rfc6902, `[{"op":"replace","path":"/spec/ports/0/port","value":81}]`, ""},
			ports, "[81]", "[80]", "spec.ports changed by kubectl-patch"},
		"a patch adds a named port to a Service": {"services.v1", "service",
			act{"kubectl-patch", merge, `{"spec":{"ports":[{"port":80,"name":"a"},{"port":81,"name":"b"}]}}`, ""},
			ports, "[80 81]", "[80]", "spec.ports[port=81] added by kubectl-patch"},
		"a patch adds to the selector of a Service": {"services.v1", "service",
			act{"kubectl-patch", merge, `{"spec":{"selector":{"more":"x"}}}`, ""},
			at("spec", "selector", "more"), "x", nil, "spec.selector changed by kubectl-patch"},
		"edit adds a key to a ConfigMap": {configMaps, "map",
			act{"kubectl-edit", merge, `{"data":{"more":"y"}}`, ""},
			at("data", "more"), "y", nil, "data.more added by kubectl-edit"},
		"create or replace adds a label to those that the template has": {configMaps, "map",
			act{"kubectl-replace", merge, `{"metadata":{"labels":{"more":"y"}}}`, ""},
			at("metadata", "labels", "more"), "y", nil, "metadata.labels.more added by kubectl-replace"},
		"apply by another person adds a key": {configMaps, "map",
			act{"kubectl-client-side-apply", merge, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"data":{"value":"z","more":"y"}}`, ""},
			at("data"), map[string]any{"value": "z", "more": "y"}, map[string]any{"value": "x"}, "data.value changed, data.more added by kubectl-client-side-apply"},
		"and its book stays": {configMaps, "map",
			act{"kubectl-client-side-apply", merge, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`, ""},
			at("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"), "{}", "{}", ""},
		"apply --server-side by another person adds a key": {configMaps, "map",
			act{"kubectl", apply, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"value":"x","more":"y"}}`, ""},
			at("data", "more"), "y", nil, "data.more added by kubectl"},
		"a patch adds a container": {deployments, "web",
			act{"kubectl-patch", strategic, pod(`{"containers":[{"name":"more","image":"i"}]}`), ""},
			names("containers"), "more web", "web", "spec.template.spec.containers[name=more] added by kubectl-patch"},
		"set resources adds a limit": {deployments, "web",
			act{"kubectl-set", strategic, pod(`{"containers":[{"name":"web","resources":{"limits":{"cpu":"1"}}}]}`), ""},
			container("resources", "limits", "cpu"), "1", nil, "spec.template.spec.containers[name=web].resources.limits.cpu added by kubectl-set"},
		"set resources asks for what the template says nothing of": {deployments, "web",
			act{"kubectl-set", strategic, pod(`{"containers":[{"name":"web","resources":{"requests":{"cpu":"1"}}}]}`), ""},
			container("resources", "requests", "cpu"), "1", "1", ""},
		"set image": {deployments, "web",
			act{"kubectl-set", strategic, pod(`{"containers":[{"name":"web","image":"j"}]}`), ""},
			container("image"), "j", "i", "spec.template.spec.containers changed by kubectl-set"},
		"a volume goes together with its mount": {deployments, "sized",
			act{"kubectl-edit", strategic, pod(`{"volumes":[{"name":"more","emptyDir":{}}],"containers":[{"name":"web","volumeMounts":[{"name":"more","mountPath":"/m"}]}]}`), ""},
			names("volumes"), "more tmp", "tmp", "spec.template.spec.volumes[name=more] added by kubectl-edit"},
		"a field that the template says nothing of": {deployments, "web",
			act{"kubectl-edit", strategic, pod(`{"hostNetwork":true}`), ""},
			at("spec", "template", "spec", "hostNetwork"), true, true, ""},
		"the same where drift is strict": {deployments, "strict",
			act{"kubectl-edit", strategic, pod(`{"hostNetwork":true}`), ""},
			at("spec", "template", "spec", "hostNetwork"), true, nil, "spec.template.spec.hostNetwork added by kubectl-edit"},
		"rollout restart": {deployments, "web",
			act{"kubectl-rollout", strategic, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`, ""},
			at("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "now", "now", ""},
		"rollout restart where drift is strict": {deployments, "strict",
			act{"kubectl-rollout", strategic, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`, ""},
			at("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "now", nil,
			`spec.template.metadata.annotations added by kubectl-rollout`},
		"annotate": {configMaps, "map",
			act{"kubectl-annotate", merge, `{"metadata":{"annotations":{"more":"y"}}}`, ""},
			at("metadata", "annotations", "more"), "y", "y", ""},
		"label": {configMaps, "map",
			act{"kubectl-label", merge, `{"metadata":{"labels":{"more":"y"}}}`, ""},
			at("metadata", "labels", "more"), "y", "y", ""},
		"edit annotates a child whose template has no annotations": {configMaps, "map",
			act{"kubectl-edit", merge, `{"metadata":{"annotations":{"more":"y"}}}`, ""},
			at("metadata", "annotations", "more"), "y", "y", ""},
		"scale without replicas in the template": {deployments, "web",
			act{"kubectl", merge, `{"spec":{"replicas":2}}`, "scale"},
			at("spec", "replicas"), int64(2), int64(2), ""},
		"scale with replicas in the template": {deployments, "sized",
			act{"kubectl", merge, `{"spec":{"replicas":2}}`, "scale"},
			at("spec", "replicas"), int64(2), int64(0), "spec.replicas changed by kubectl"},
		"scale where drift is strict": {deployments, "strict",
			act{"kubectl", merge, `{"spec":{"replicas":2}}`, "scale"},
			at("spec", "replicas"), int64(2), int64(2), ""},
		"an autoscaler": {deployments, "web",
			act{"kube-controller-manager", merge, `{"spec":{"replicas":2}}`, "scale"},
			at("spec", "replicas"), int64(2), int64(2), ""},
		"an autoscaler where drift is strict": {deployments, "strict",
			act{"kube-controller-manager", merge, `{"spec":{"replicas":2}}`, "scale"},
			at("spec", "replicas"), int64(2), int64(2), ""},
		"a webhook's container": {deployments, "web",
			act{"injector", strategic, pod(`{"containers":[{"name":"more","image":"i"}]}`), ""},
			names("containers"), "more web", "more web", ""},
		"a container by another program where drift is strict": {deployments, "strict",
			act{"injector", strategic, pod(`{"containers":[{"name":"more","image":"i"}]}`), ""},
			names("containers"), "more web", "web", "spec.template.spec.containers[name=more] added by injector"},
		"a field by curl where drift is strict": {deployments, "strict",
			act{"curl", merge, pod(`{"hostNetwork":true}`), ""},
			at("spec", "template", "spec", "hostNetwork"), true, nil, "spec.template.spec.hostNetwork added by curl"},
		"a label by k9s where drift is strict": {deployments, "strict",
			act{"k9s", merge, `{"metadata":{"labels":{"more":"y"}}}`, ""},
			at("metadata", "labels", "more"), "y", nil, "metadata.labels.more added by k9s"},
		"apply --server-side --field-manager where drift is strict": {deployments, "strict",
			act{"me", apply, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME"},"spec":{"minReadySeconds":7}}`, ""},
			at("spec", "minReadySeconds"), int64(7), nil, "spec.minReadySeconds added by me"},
		"a container by a manager that is allowed": {deployments, "strict",
			act{"sidecars", strategic, pod(`{"containers":[{"name":"more","image":"i"}]}`), ""},
			names("containers"), "more web", "more web", ""},
		"a command of kubectl that is allowed": {deployments, "strict",
			act{"kubectl-annotate", merge, `{"metadata":{"annotations":{"more":"y"}}}`, ""},
			at("metadata", "annotations", "more"), "y", "y", ""},
		"a finalizer where drift is strict": {deployments, "strict",
			act{"k9s", merge, `{"metadata":{"finalizers":["example.com/held"]}}`, ""},
			at("metadata", "finalizers"), []any{"example.com/held"}, []any{"example.com/held"}, ""},
		"a field by the control plane where drift is strict": {deployments, "strict",
			act{"kube-controller-manager", merge, `{"spec":{"paused":true}}`, ""},
			at("spec", "paused"), true, true, ""},
		"a status": {deployments, "web",
			act{"kubectl-edit", merge, `{"status":{"collisionCount":3}}`, "status"},
			at("status", "collisionCount"), int64(3), int64(3), ""},
		"a value where drift is ignored": {configMaps, "loose",
			act{"kubectl-edit", merge, `{"data":{"value":"z","more":"y"}}`, ""},
			at("data"), map[string]any{"value": "z", "more": "y"}, map[string]any{"value": "z", "more": "y"}, ""},
	}
}

// TestApplyMeetsPeoplesHands: what a person changes of a child with kubectl is undone or stays, as drift says. What is
// undone costs two requests, once, and what stays none, also of a new process.
func TestApplyMeetsPeoplesHands(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps,services"), made("apps", "deployments"))
	s.run(t, beside+handled)
	for name, test := range handCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := "w-" + rand.String(8)
			s.works.Create(t, work(w, "a"))
			s.applied(t, w)
			child, objects := w+"-"+test.child, plane.Objects(test.resource, s.ns)
			mark := plane.Mark(t)
			if got := test.see(test.act.on(t, objects, child)); !same(t, got, test.then) && test.act.sub != "scale" {
				t.Fatalf("the act comes to %v, want %v", got, test.then)
			}
			objects.Await(t, child, fmt.Sprintf("%v", test.want), func(o *unstructured.Unstructured) bool { return same(t, test.see(o), test.want) })
			s.quiesce(t, w)
			got := plane.Writes(t, s.user.Name, mark).Of(objects.Name.Resource, child).WithoutConflicts() // its controller writes as well
			lines := s.running.With(" " + s.ns + "/" + child + ": ")
			switch {
			case test.said == "" && len(got)+len(lines) > 0:
				t.Errorf("%d writes:\n%s%s", len(got), got, strings.Join(lines, ""))
			case test.said != "" && (len(got) == 0 || len(got) > 4):
				t.Errorf("%d writes:\n%s", len(got), got)
			case test.said != "" && (len(lines) != 1 || !strings.Contains(lines[0], test.said)):
				t.Errorf("it is said, want one line with %q:\n%s", test.said, strings.Join(lines, ""))
			}
			if now := test.see(objects.Get(t, child)); !same(t, now, test.want) {
				t.Errorf("in the end it is %v, want %v", now, test.want)
			}
			s.applied(t, w)
		})
	}
}

func same(t *testing.T, a, b any) bool { return asJSON(t, a) == asJSON(t, b) }
