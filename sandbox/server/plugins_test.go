// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// plugins are cases of admission. The objects of given are there before. The object of create is refused in these words, or it is
// created, and has these fields.
var plugins = []struct{ name, given, create, refused, warning, has string }{
	{
		name:    "A Pod with an unknown ServiceAccount is refused",
		create:  `pods {metadata: {name: a}, spec: {serviceAccountName: nope, containers: [{name: c, image: i}]}}`,
		refused: `pods "a" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found`,
	},
	{
		name:    "A generated name is not in the words of a refusal",
		create:  `pods {metadata: {generateName: a-}, spec: {serviceAccountName: nope, containers: [{name: c, image: i}]}}`,
		refused: `pods "a-" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found`,
	},
	{
		name:   "A Pod gets the image pull secrets of its ServiceAccount",
		given:  `serviceaccounts {metadata: {name: puller}, imagePullSecrets: [{name: s}]}`,
		create: `pods {metadata: {name: a}, spec: {serviceAccountName: puller, containers: [{name: c, image: i}]}}`,
		has:    `{serviceAccount: puller, imagePullSecrets: [{name: s}]}`,
	},
	{
		name:    "A Pod with an unknown PriorityClass is refused",
		create:  `pods {metadata: {name: a}, spec: {priorityClassName: nope, containers: [{name: c, image: i}]}}`,
		refused: `pods "a" is forbidden: no PriorityClass with name nope was found`,
	},
	{
		name:   "A Pod gets the priority of its class",
		given:  `scheduling.k8s.io/v1/priorityclasses {metadata: {name: high}, value: 7, preemptionPolicy: Never}`,
		create: `pods {metadata: {name: a}, spec: {priorityClassName: high, containers: [{name: c, image: i}]}}`,
		has:    `{priority: 7, preemptionPolicy: Never}`,
	},
	{
		name:   "A Pod without a class gets the default one",
		given:  `scheduling.k8s.io/v1/priorityclasses {metadata: {name: usual}, value: 5, globalDefault: true}`,
		create: `pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}`,
		has:    `{priorityClassName: usual, priority: 5}`,
	},
	{
		name:   "A Pod may be critical for the cluster",
		create: `pods {metadata: {name: a}, spec: {priorityClassName: system-node-critical, containers: [{name: c, image: i}]}}`,
		has:    `{priority: 2000001000, preemptionPolicy: PreemptLowerPriority}`,
	},
	{
		name:    "There is one default PriorityClass",
		given:   `scheduling.k8s.io/v1/priorityclasses {metadata: {name: usual}, value: 5, globalDefault: true}`,
		create:  `scheduling.k8s.io/v1/priorityclasses {metadata: {name: b}, value: 6, globalDefault: true}`,
		refused: `priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass usual is already marked as default. Only one default can exist`,
	},
	{
		name:    "A Pod with an unknown RuntimeClass is refused",
		create:  `pods {metadata: {name: a}, spec: {runtimeClassName: nope, containers: [{name: c, image: i}]}}`,
		refused: `pods "a" is forbidden: pod rejected: RuntimeClass "nope" not found`,
	},
	{
		name:   "A Pod gets what its RuntimeClass says, after the tolerations of each Pod",
		given:  `node.k8s.io/v1/runtimeclasses {metadata: {name: vm}, handler: h, overhead: {podFixed: {cpu: 100m}}, scheduling: {nodeSelector: {a: b}, tolerations: [{key: vm, operator: Exists}]}}`,
		create: `pods {metadata: {name: a}, spec: {runtimeClassName: vm, containers: [{name: c, image: i}]}}`,
		has: `{overhead: {cpu: 100m}, nodeSelector: {a: b}, tolerations: [` +
			`{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, ` +
			`{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, ` +
			`{key: vm, operator: Exists}]}`,
	},
	{
		name:   "A claim gets the default StorageClass",
		given:  `storage.k8s.io/v1/storageclasses {metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: p}`,
		create: `persistentvolumeclaims {metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		has:    `{storageClassName: fast}`,
	},
	{
		name:   "An Ingress gets the default IngressClass",
		given:  `networking.k8s.io/v1/ingressclasses {metadata: {name: door, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.com/c}}`,
		create: `networking.k8s.io/v1/ingresses {metadata: {name: a}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`,
		has:    `{ingressClassName: door}`,
	},
	{
		name:   "A container gets the default amounts of a LimitRange",
		given:  `limitranges {metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: "1"}, defaultRequest: {cpu: 100m}}]}}`,
		create: `pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}`,
		has:    `{containers: [{name: c, image: i, imagePullPolicy: Always, resources: {limits: {cpu: "1"}, requests: {cpu: 100m}}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}]}`,
	},
	{
		name:    "A Pod does not exceed a LimitRange",
		given:   `limitranges {metadata: {name: l}, spec: {limits: [{type: Pod, max: {memory: 1Gi}}]}}`,
		create:  `pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {limits: {memory: 600Mi}}}, {name: d, image: i, resources: {limits: {memory: 600Mi}}}]}}`,
		refused: `pods "a" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 1200Mi`,
	},
	{
		name:    "A claim does not exceed a LimitRange",
		given:   `limitranges {metadata: {name: l}, spec: {limits: [{type: PersistentVolumeClaim, min: {storage: 1Gi}}]}}`,
		create:  `persistentvolumeclaims {metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`,
		refused: `persistentvolumeclaims "a" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi`,
	},
	{
		name:    "A namespace has no more objects than its quota allows",
		given:   `resourcequotas {metadata: {name: q}, spec: {hard: {count/configmaps: "1"}}}`,
		create:  `configmaps {metadata: {name: a}}`, // kube-root-ca.crt is there
		refused: `configmaps "a" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1`,
	},
	{
		name:    "Pods ask for no more than a quota allows",
		given:   `resourcequotas {metadata: {name: q}, spec: {hard: {requests.cpu: "1", limits.memory: 1Gi}}}`,
		create:  `pods {metadata: {name: a}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "2"}, limits: {memory: 1Gi}}}]}}`,
		refused: `pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1`,
	},
	{
		name:    "Pods say what a quota limits",
		given:   `resourcequotas {metadata: {name: q}, spec: {hard: {requests.cpu: "1", limits.memory: 1Gi}}}`,
		create:  `pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}`,
		refused: `pods "a" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c`,
	},
	{
		name:    "A Pod keeps to the Pod Security Standard of its namespace",
		given:   `/namespaces {metadata: {name: default, labels: {pod-security.kubernetes.io/enforce: baseline}}}`,
		create:  `pods {metadata: {name: a}, spec: {hostNetwork: true, containers: [{name: c, image: i}]}}`,
		refused: `pods "a" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
	},
	{
		name:    "A template that the namespace would not take is warned of",
		given:   `/namespaces {metadata: {name: default, labels: {pod-security.kubernetes.io/enforce: baseline}}}`,
		create:  `apps/v1/deployments {metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {hostPID: true, containers: [{name: c, image: i}]}}}}`,
		warning: `299 - "would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"`,
	},
}

func TestPluginsCompleteAndRefuse(t *testing.T) {
	for _, c := range plugins {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t, complete.Settings())
			if c.given != "" {
				w.make(c.given)
			}
			out := w.make(c.create)
			if c.refused != "" {
				if out.code != http.StatusForbidden || out.message() != c.refused {
					t.Fatalf("%d %s", out.code, out.text)
				}
				return
			}
			if out.code != http.StatusCreated || out.header.Get("Warning") != c.warning {
				t.Fatalf("%d %s, warning %s", out.code, out.text, out.header.Get("Warning"))
			}
			var want map[string]any
			if err := yaml.Unmarshal([]byte(c.has), &want); err != nil {
				t.Fatal(err)
			}
			for field, value := range want {
				got, _, _ := unstructured.NestedFieldNoCopy(out.json, "spec", field)
				if diff := cmp.Diff(value, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", field, diff)
				}
			}
		})
	}
}

func TestWithoutControllersNothingWaitsForThem(t *testing.T) {
	settings := complete.Settings()
	settings.Unfurnished = true
	w := newWire(t, settings)
	if out := w.make(`pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}`); out.code != http.StatusCreated {
		t.Errorf("a Pod without a ServiceAccount: %s", out.text)
	}
	w.make(`persistentvolumeclaims {metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	const claim = "/api/v1/namespaces/default/persistentvolumeclaims/a"
	w.send(http.MethodDelete, claim, "")
	if out := w.send(http.MethodGet, claim, ""); out.code != http.StatusNotFound {
		t.Errorf("a deleted claim: %s", out.text)
	}
}

func TestServicesHaveAddressesOfTheirOwn(t *testing.T) {
	w := newWire(t, complete.Settings())
	for _, step := range []struct{ name, service, want string }{
		{"the first one gets the first address", `{metadata: {name: a}, spec: {type: NodePort, ports: [{port: 80}]}}`, "10.96.0.11 30000"},
		{"the next one gets the next address", `{metadata: {name: b}, spec: {type: NodePort, ports: [{port: 80}]}}`, "10.96.0.12 30001"},
		{
			"an address has one Service", `{metadata: {name: c}, spec: {clusterIP: 10.96.0.12, ports: [{port: 80}]}}`,
			`Service "c" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.12"]: failed to allocate IP 10.96.0.12: provided IP is already allocated`,
		},
		{
			"an address is in the network", `{metadata: {name: c}, spec: {clusterIP: 192.0.2.1, ports: [{port: 80}]}}`,
			`Service "c" is invalid: spec.clusterIPs: Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1: the provided network does not match the current range`,
		},
		{
			"a port of nodes has one Service", `{metadata: {name: c}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30001}]}}`,
			`Service "c" is invalid: spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated`,
		},
		{
			"a port of nodes is in the range", `{metadata: {name: c}, spec: {type: NodePort, ports: [{port: 80, nodePort: 80}]}}`,
			`Service "c" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767`,
		},
		{"an address that is free is given", `{metadata: {name: c}, spec: {clusterIP: 10.96.0.13, ports: [{port: 80}]}}`, "10.96.0.13 <nil>"},
		{"an address that another one has asked for is passed", `{metadata: {name: d}, spec: {ports: [{port: 80}]}}`, "10.96.0.14 <nil>"},
	} {
		out := w.make("services " + step.service)
		got := out.message()
		if out.code == http.StatusCreated {
			ports, _, _ := unstructured.NestedSlice(out.json, "spec", "ports")
			address, _, _ := unstructured.NestedString(out.json, "spec", "clusterIP")
			got = fmt.Sprint(address, " ", ports[0].(map[string]any)["nodePort"])
		}
		if got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

func TestAQuotaSaysWhatIsUsed(t *testing.T) {
	w := newWire(t, complete.Settings())
	const quota = "/api/v1/namespaces/default/resourcequotas/q"
	w.make(`resourcequotas {metadata: {name: q}, spec: {hard: {pods: "3", requests.cpu: "1", services.nodeports: "2"}}}`)
	check := func(want map[string]any) {
		t.Helper()
		status, _ := w.send(http.MethodGet, quota, "").json["status"].(map[string]any)
		if diff := cmp.Diff(want, status["used"]); diff != "" {
			t.Errorf("used (-want +got):\n%s", diff)
		}
	}
	check(map[string]any{"pods": "0", "requests.cpu": "0", "services.nodeports": "0"})
	w.make(`pods {metadata: {name: a}, spec: {schedulerName: none, containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}}`)
	w.make(`services {metadata: {name: s}, spec: {type: NodePort, ports: [{port: 80}]}}`)
	check(map[string]any{"pods": "1", "requests.cpu": "100m", "services.nodeports": "1"})
	w.send(http.MethodDelete, "/api/v1/namespaces/default/pods/a", "")
	check(map[string]any{"pods": "0", "requests.cpu": "0", "services.nodeports": "1"})
}

// make creates an object, which is written as its resource and its YAML. A namespace that is there is patched.
func (w wire) make(text string) answer {
	w.t.Helper()
	resource, object, _ := strings.Cut(text, " ")
	body, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		w.t.Fatal(err)
	}
	group, plural := "/api/v1", resource
	if i := strings.LastIndex(resource, "/"); i > 0 {
		group, plural = "/apis/"+resource[:i], resource[i+1:]
	}
	path := group + "/namespaces/default/" + plural
	switch plural {
	case "/namespaces":
		return w.send(http.MethodPatch, "/api/v1/namespaces/default", string(body), "Content-Type", "application/merge-patch+json")
	case "priorityclasses", "runtimeclasses", "storageclasses", "ingressclasses":
		path = group + "/" + plural
	}
	return w.send(http.MethodPost, path, string(body))
}
