// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// written are children as people write them, by name: with values that the server writes otherwise,
// adds to or leaves out. Those whose names end in -rewritten cost one request for each life of a
// process: the server rewrites a value that is not known here.
const written = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: w-map}, data: {value: "", n: "1000m"}, binaryData: {b: "eg=="}}
---
{apiVersion: v1, kind: Secret, metadata: {name: w-text}, stringData: {a: x, b: ""}}
---
{apiVersion: v1, kind: Secret, metadata: {name: w-data}, type: Opaque, data: {a: "eA==\n"}, stringData: {b: "yes"}}
---
{apiVersion: v1, kind: Service, metadata: {name: w-service}, spec: {selector: {app: w}, publishNotReadyAddresses: false,
  ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 81, targetPort: "http"}, {name: c, port: 82}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: w-headless}, spec: {clusterIP: None, selector: {app: w}, ports: [{port: 53, name: udp, protocol: UDP}, {port: 53, name: tcp}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: w-account}, automountServiceAccountToken: false, imagePullSecrets: [{name: w-pull}]}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: w-claim}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: w-quota}, spec: {hard: {requests.cpu: "1000", limits.memory: 1024Gi, pods: 1e3}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: w-limits}, spec: {limits: [{type: Container, default: {cpu: 1000m}, defaultRequest: {cpu: "0.5"}}]}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: w-scaler}, spec: {maxReplicas: 3,
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w-none}, metrics: [
  {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1024Mi}}},
  {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}},
  {type: Object, object: {metric: {name: m}, describedObject: {kind: Service, name: s, apiVersion: v1}, target: {type: Value, value: 2000m}}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: w-deployment}, spec: {replicas: 0, minReadySeconds: 0, paused: false,
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: "25%"}}, selector: {matchLabels: {app: w}}, template: {metadata: {labels: {app: w}}, spec: {
  hostNetwork: false, securityContext: {}, nodeSelector: {}, terminationGracePeriodSeconds: 5,
  containers: [{name: c, image: i, args: ["a", "b"], env: [{name: Z, value: z}, {name: A, value: ""}, {name: R, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1000m"}}}],
    resources: {requests: {cpu: "0.5", memory: 1024Mi}, limits: {cpu: 1000m, memory: 2e9}}, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 0}],
    volumeMounts: [{name: v, mountPath: /v, readOnly: false, subPath: ""}],
    readinessProbe: {initialDelaySeconds: 0, httpGet: {port: http, path: /}}, livenessProbe: {tcpSocket: {port: 80}}}],
  volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory, sizeLimit: 1024Mi}}, {name: s, secret: {secretName: s}}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w-stateful}, spec: {replicas: 0, serviceName: w-headless, selector: {matchLabels: {app: s}},
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}},
  volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "1073741824"}}}}]}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: w-daemon}, spec: {selector: {matchLabels: {app: d}},
  template: {metadata: {labels: {app: d}}, spec: {nodeSelector: {none: "x"}, tolerations: [{operator: Exists}], containers: [{name: c, image: i, securityContext: {privileged: false}}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: w-job}, spec: {suspend: true, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [x]}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: w-cron}, spec: {schedule: "@yearly", suspend: false, jobTemplate: {spec: {template: {spec: {
  restartPolicy: OnFailure, containers: [{name: c, image: i, resources: {limits: {memory: 0.5Gi}}}]}}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: w-ingress}, spec: {tls: [{hosts: [a.example.com]}], rules: [{host: a.example.com, http: {paths: [
  {path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: w-policy}, spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}], ports: [{port: 80}, {port: http}]}], egress: []}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: w-budget}, spec: {minAvailable: "50%", selector: {matchLabels: {app: w}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: w-role}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: w-binding}, roleRef: {kind: Role, name: w-role, apiGroup: rbac.authorization.k8s.io},
  subjects: [{kind: ServiceAccount, name: w-account}, {kind: User, name: u}]}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: w-lease-rewritten}, spec: {renewTime: "2020-01-01T01:00:00.000000+01:00"}}
`

// TestChildrenAreQuiet: children that were applied are not applied again, neither by the same
// process nor by a new one, whatever the server made of what was written, and whether that is a map or of a type of k8s.io/api.
func TestChildrenAreQuiet(t *testing.T) {
	t.Parallel()
	t.Run("maps", func(t *testing.T) {
		quiet(t, "-rewritten", func(o *unstructured.Unstructured) (any, error) { return o, nil })
	})
	t.Run("typed", func(t *testing.T) { quiet(t, "-none", typed) }) // types write each value as the server does
}

// typed returns an object in its type of k8s.io/api.
func typed(o *unstructured.Unstructured) (any, error) {
	out, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	data, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(data, out)
}

// quiet tests children that are given as a function makes them; those whose names end so are written to in each life.
func quiet(t *testing.T, rewritten string, given func(*unstructured.Unstructured) (any, error)) {
	t.Parallel()
	s := newStage(t)
	s.user.Allow(t, cluster.Rule("*", "*", "*"))
	desired, err := cluster.Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	define := func(r *dsl.Resource) {
		for _, d := range desired {
			r.OwnsKind(d.GroupVersionKind())
		}
		r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			if r.Object.GetName() != "w" {
				return nil
			}
			for _, d := range desired {
				child, err := given(d)
				if err != nil {
					return dsl.Permanent(err)
				}
				if _, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Handler: "level", Name: d.GetName()}); err != nil {
					return err
				}
			}
			all, err := r.Children.All()
			if err == nil && len(all) != len(desired) {
				t.Errorf("%d children are found of %d", len(all), len(desired))
			}
			return err
		}))
	}
	running := s.play(t, define)
	mark := plane.Mark(t)
	s.works.Create(t, work("w", "a"))
	last := desired[len(desired)-1].GetName()
	plane.Objects("leases.v1.coordination.k8s.io", s.ns).Await(t, last, "being made", func(*unstructured.Unstructured) bool { return true })
	s.quiesce(t, "level")
	var made []string
	for _, d := range desired {
		made = append(made, d.GetName())
	}
	if diff := cmp.Diff(made, namesOf(plane.Writes(t, s.user.Name, mark, "leases"))); diff != "" {
		t.Errorf("writes of the first process (-want +got):\n%s", diff)
	}
	for life := range 2 {
		running.Stop(t)
		mark = plane.Mark(t)
		running = s.play(t, define)
		running.Await(t, `"handler succeeded" "resource"="works.v1.e2e.example.com" "namespace"="`+s.ns+`" "name"="w"`) // others overtake it
		s.quiesce(t, "level")
		want := slices.DeleteFunc(slices.Clone(made), func(name string) bool { return !strings.HasSuffix(name, rewritten) })
		if diff := cmp.Diff(want, namesOf(plane.Writes(t, s.user.Name, mark, "leases")), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("writes of process %d (-want +got):\n%s", life+2, diff)
		}
	}
}

// namesOf are the names of children that were written to, with what was not a success.
func namesOf(writes cluster.Writes) []string {
	var out []string
	for _, w := range writes {
		switch {
		case !strings.HasPrefix(w.Name, "w-"):
		case w.Code >= 400:
			out = append(out, fmt.Sprint(w.Name, " ", w.Code))
		default:
			out = append(out, w.Name)
		}
	}
	return out
}
