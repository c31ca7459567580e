// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ofKind returns an object of a kind.
func ofKind(t *testing.T, apiVersion, kind, text string, entries ...[2]string) *unstructured.Unstructured {
	t.Helper()
	out := child(t, text, entries...)
	out.SetAPIVersion(apiVersion)
	out.SetKind(kind)
	return out
}

// TestHandover holds which fields change hands before a template is applied.
func TestHandover(t *testing.T) {
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	applies := func(fields string) [2]string { return [2]string{"op", fields} }
	edits := func(fields string) [2]string { return [2]string{"kubectl-edit", fields} }
	tests := map[string]struct {
		kind          string
		desired, live string
		managers      [][2]string
		released      []string
		claimed       []string
	}{
		"replicas that the template drops are released": {
			"Deployment", "{spec: {paused: true}}", "{spec: {replicas: 5}}", [][2]string{applies(replicas)}, []string{".spec.replicas"}, nil,
		},
		"replicas that the template has stay": {"Deployment", "{spec: {replicas: 1}}", "{spec: {replicas: 5}}", [][2]string{applies(replicas)}, nil, nil},
		"replicas of others are theirs":       {"Deployment", "{spec: {paused: true}}", "{spec: {replicas: 5}}", [][2]string{edits(replicas)}, nil, nil},
		"replicas that others want as well stay by themselves": {
			"Deployment", "{spec: {paused: true}}", "{spec: {replicas: 5}}", [][2]string{applies(replicas), edits(replicas)}, nil, nil,
		},
		"a default of another strategy is claimed": {
			"Deployment", "{spec: {strategy: {type: Recreate}}}", "{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}}}", nil, nil, []string{".spec.strategy.rollingUpdate"},
		},
		"the default of the same strategy stays": {
			"Deployment", "{spec: {strategy: {type: RollingUpdate}}}", "{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}}}", nil, nil, nil,
		},
		"parameters of another strategy that somebody has set stay": {
			"Deployment", "{spec: {strategy: {type: Recreate}}}", "{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}",
			[][2]string{edits(`{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}}}}}`)}, nil, nil,
		},
		"parameters that the operator has set go with the apply": {
			"Deployment", "{spec: {strategy: {type: Recreate}}}", "{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}}}",
			[][2]string{applies(`{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}}}}}`)}, nil, nil,
		},
		"a StatefulSet has one, too": {
			"StatefulSet", "{spec: {updateStrategy: {type: OnDelete}}}", "{spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}}", nil, nil, []string{".spec.updateStrategy.rollingUpdate"},
		},
		"a DaemonSet may keep it": {
			"DaemonSet", "{spec: {updateStrategy: {type: OnDelete}}}", "{spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}}}", nil, nil, nil,
		},
		"the default source of a volume is claimed": {
			"Deployment", "{spec: {template: {spec: {volumes: [{name: v, secret: {secretName: s}}]}}}}", "{spec: {template: {spec: {volumes: [{name: w, emptyDir: {}}, {name: v, emptyDir: {}}]}}}}",
			nil, nil, []string{`.spec.template.spec.volumes[name="v"].emptyDir`},
		},
		"the default source of a volume without one stays": {
			"Deployment", "{spec: {template: {spec: {volumes: [{name: v}]}}}}", "{spec: {template: {spec: {volumes: [{name: v, emptyDir: {}}]}}}}", nil, nil, nil,
		},
		"the old name of a service account goes with the new one": {
			"Deployment", "{spec: {template: {spec: {hostPID: true}}}}", "{spec: {template: {spec: {serviceAccountName: a, serviceAccount: a}}}}",
			[][2]string{applies(`{"f:spec":{"f:template":{"f:spec":{"f:serviceAccountName":{}}}}}`)}, nil, []string{".spec.template.spec.serviceAccount"},
		},
		"the service account of others stays": {
			"Deployment", "{spec: {template: {spec: {hostPID: true}}}}", "{spec: {template: {spec: {serviceAccountName: a, serviceAccount: a}}}}",
			[][2]string{edits(`{"f:spec":{"f:template":{"f:spec":{"f:serviceAccountName":{}}}}}`)}, nil, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := ofKind(t, "apps/v1", tt.kind, tt.live, tt.managers...)
			entries := live.GetManagedFields()
			for i := range entries {
				if entries[i].Manager == "op" {
					entries[i].Operation = "Apply"
				}
			}
			live.SetManagedFields(entries)
			got := HandoverOf(ofKind(t, "apps/v1", tt.kind, tt.desired), live, "op", dsl.Path{"spec", "replicas"})
			if diff := cmp.Diff([][]string{tt.released, tt.claimed}, [][]string{textOf(got.Released), textOf(got.Claimed)}); diff != "" {
				t.Errorf("released and claimed (-want +got):\n%s", diff)
			}
		})
	}
}

func textOf(set *fieldpath.Set) (out []string) {
	for path := range set.All() {
		out = append(out, path.String())
	}
	return out
}

// TestKubernetesMarksNoOtherUnions holds that each field that Kubernetes marks with patchStrategy retainKeys is one that is looked
// at, or has no default.
func TestKubernetesMarksNoOtherUnions(t *testing.T) {
	found := map[string]bool{}
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		for _, path := range retained(of, nil) {
			found[kind.GroupKind().String()+" "+strings.Join(path, ".")] = true
		}
	}
	for place := range found {
		name, path, _ := strings.Cut(place, " ")
		kind := schema.ParseGroupKind(name)
		strategy := strings.Join(strategyOf(kind), ".")
		volumes := strings.Join(append(slices.Clip(podSpecOf(kind)), "volumes"), ".")
		withoutDefault := strings.HasSuffix(path, "resourceClaims") || path == "status.resourceClaimStatuses"
		withdrawn := kind.Group == "extensions"
		if path != strategy && path != volumes && !withoutDefault && !withdrawn {
			t.Errorf("%s is not looked at", place)
		}
	}
	for _, known := range []string{"Deployment.apps spec.strategy", "CronJob.batch spec.jobTemplate.spec.template.spec.volumes", "PodTemplate template.spec.volumes"} {
		if !found[known] {
			t.Errorf("%s is not marked any more; there are %v", known, slices.Sorted(maps.Keys(found)))
		}
	}
}

// retained returns the paths of the fields of a type that are marked with retainKeys.
func retained(of reflect.Type, at []string) (out [][]string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || len(at) > 8 {
		return nil
	}
	for field := range of.Fields() {
		below := at
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			below = append(slices.Clip(at), name)
		}
		if strings.Contains(field.Tag.Get("patchStrategy"), "retainKeys") {
			out = append(out, below)
		}
		out = append(out, retained(field.Type, below)...)
	}
	return out
}
