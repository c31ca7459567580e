// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestCellsAreThoseOfKubectl(t *testing.T) {
	for name, c := range map[string]struct{ group, plural, object, want string }{
		"a pod that runs": {"", "pods", `{metadata: {name: a}, spec: {nodeName: node-1, containers: [{}, {}]}, status: {phase: Running, podIPs: [{ip: 1.2.3.4}], containerStatuses: [{ready: true, restartCount: 2, state: {running: {}}}, {state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
			"[a 1/2 CrashLoopBackOff 2 <unknown> 1.2.3.4 node-1 <none> <none>]"},
		"a pod that initializes": {"", "pods", `{metadata: {name: a}, spec: {initContainers: [{}, {}], containers: [{}]}, status: {phase: Pending, initContainerStatuses: [{state: {terminated: {exitCode: 0}}}, {state: {running: {}}}]}}`,
			"[a 0/1 Init:1/2 0 <unknown> <none> <none> <none> <none>]"},
		"a pod that is being deleted": {"", "pods", `{metadata: {name: a, deletionTimestamp: x}, spec: {containers: [{}]}, status: {phase: Running}}`,
			"[a 0/1 Terminating 0 <unknown> <none> <none> <none> <none>]"},
		"a pod whose sidecar has ended": {"", "pods", `{metadata: {name: a}, spec: {initContainers: [{name: s, restartPolicy: Always}], containers: [{}]}, status: {phase: Succeeded, initContainerStatuses: [{name: s, started: true, ready: true, state: {terminated: {exitCode: 0, reason: Completed}}}], containerStatuses: [{ready: false, state: {terminated: {exitCode: 0, reason: Completed}}}]}}`,
			"[a 0/2 Completed 0 <unknown> <none> <none> <none> <none>]"},
		"a deployment": {"apps", "deployments", `{metadata: {name: a}, spec: {replicas: 3, selector: {matchLabels: {x: "1", a: b}}, template: {spec: {containers: [{name: c, image: i}]}}}, status: {readyReplicas: 2, updatedReplicas: 3}}`,
			"[a 2/3 3 0 <unknown> c i a=b,x=1]"},
		"a service": {"", "services", `{metadata: {name: a}, spec: {type: LoadBalancer, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30000}, {port: 53, protocol: UDP}]}}`,
			"[a LoadBalancer 10.0.0.1 <pending> 80:30000/TCP,53/UDP <unknown> <none>]"},
		"a job": {"batch", "jobs", `{metadata: {name: a}, spec: {completions: 2}, status: {succeeded: 2, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:00:05Z", conditions: [{type: Complete, status: "True"}]}}`,
			"[a Complete 2/2 5s <unknown>   <none>]"},
		"a node": {"", "nodes", `{metadata: {name: a, labels: {node-role.kubernetes.io/worker: ""}}, spec: {unschedulable: true}, status: {addresses: [{type: InternalIP, address: 1.2.3.4}], conditions: [{type: Ready, status: "True"}], nodeInfo: {kubeletVersion: v1.37.0}}}`,
			"[a Ready,SchedulingDisabled worker <unknown> v1.37.0 1.2.3.4 <none> <unknown> <unknown> <unknown>]"},
		"a suspended cron job": {"batch", "cronjobs", `{metadata: {name: a}, spec: {schedule: "* * * * *", suspend: true}}`,
			"[a * * * * * <none> True 0 <none> <unknown>   <none>]"},
		"a binding": {"rbac.authorization.k8s.io", "rolebindings", `{metadata: {name: a}, roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: User, name: v}, {kind: Group, name: g}, {kind: ServiceAccount, namespace: ns, name: s}]}`,
			"[a Role/r <unknown> u, v g ns/s]"},
		"an event": {"", "events", `{metadata: {name: a}, type: Normal, reason: r, message: m, involvedObject: {kind: Pod, name: p}}`,
			"[<unknown> Normal r pod/p   m <unknown> 1 a]"},
		"another kind": {"example.com", "foos", `{metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z"}}`, "[a 2026-01-01T00:00:00Z]"},
	} {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(c.object), &o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, fmt.Sprint(Cells(For(c.group, c.plural), integers(o).(map[string]any), time.Now()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestEachColumnHasACell holds that there is a cell for each column that a real server has, and no cell for a resource that it
// lacks.
func TestEachColumnHasACell(t *testing.T) {
	for resource, columns := range definitions() {
		known := cellsOf(resource)
		for _, c := range columns {
			if known[c.Name] == nil && !slices.Contains([]string{"Name", "Age", "Created At"}, c.Name) {
				t.Errorf("%s has no cell for %s", resource, c.Name)
			}
		}
	}
	for row := range strings.Lines(cells) {
		if resource, _, _ := strings.Cut(strings.TrimSpace(row), " "); resource != "" && definitions()[resource] == nil {
			t.Errorf("there are cells for %s, which has no columns", resource)
		}
	}
}

// integers makes whole numbers integers, as objects have them.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		return int64(v)
	}
	return value
}
