// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestEphemeralVolumeClaim is kopf's tutorial, in Go and in YAML alone: a PersistentVolumeClaim comes with its owner, grows with
// it, has its labels beside others' and goes with it, and the owner's status says what became of it.
func TestEphemeralVolumeClaim(t *testing.T) {
	t.Parallel()
	for _, sample := range []string{"ephemeral-volume-claim", "ephemeral-volume-claim-yaml"} {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			ns := plane.Namespace(t)
			runSample(t, sample, []string{ns}, []rbacv1.PolicyRule{
				cluster.Rule("samples.handwerk.dev", "ephemeralvolumeclaims", "get", "list", "watch"),
				cluster.Rule("samples.handwerk.dev", "ephemeralvolumeclaims/status", "patch"),
				made("", "persistentvolumeclaims"),
			})
			volumesGrow(t, ns)
		})
	}
}

// volumesGrow is the life of an EphemeralVolumeClaim.
func volumesGrow(t *testing.T, ns string) {
	owners := plane.Objects("ephemeralvolumeclaims.v1alpha1.samples.handwerk.dev", ns)
	claims := plane.Objects("persistentvolumeclaims.v1", ns)
	provide(t, ns)
	owner := plane.Apply(t, ns, strings.ReplaceAll(ephemeral, "CLASS", ns))[0]
	reports := func(want map[string]any) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			status, _, _ := unstructured.NestedMap(o.Object, "status")
			delete(status, "conditions")
			return cmp.Equal(want, status)
		}
	}
	owners.Await(t, "scratch", "a bound claim in the status", reports(map[string]any{"claim": "scratch", "phase": "Bound", "capacity": "5Gi"}))
	claim := claims.Get(t, "scratch")
	if refs := claim.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != owner.GetUID() {
		t.Errorf("the claim's owners are %v", refs)
	}
	if got := fmt.Sprint(claim.GetLabels()); got != "map[team:blue]" {
		t.Errorf("the claim's labels are %s", got)
	}
	size := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return field(o, "spec", "resources", "requests", "storage") == want
		}
	}
	if !size("1Gi")(claim) {
		t.Errorf("the claim is %v", claim.Object["spec"])
	}
	owners.Patch(t, "scratch", `{"spec":{"size":"2Gi"}}`)
	claims.Await(t, "scratch", "2Gi", size("2Gi"))

	claims.Patch(t, "scratch", `{"metadata":{"labels":{"backup":"yes"}}}`)
	owners.Patch(t, "scratch", `{"metadata":{"labels":{"team":null,"stage":"test"}}}`)
	labelled := claims.Await(t, "scratch", "the new label", func(o *unstructured.Unstructured) bool { return o.GetLabels()["stage"] == "test" })
	if diff := cmp.Diff(map[string]string{"backup": "yes", "stage": "test"}, labelled.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	owners.Delete(t, "scratch")
	owners.AwaitGone(t, "scratch")
	claims.AwaitGone(t, "scratch")
}

// provide makes a class of volumes that can grow, of a name, and a volume of it.
func provide(t *testing.T, name string) {
	t.Helper()
	plane.Apply(t, "", strings.ReplaceAll(volumes, "NAME", name))
	t.Cleanup(func() {
		plane.Objects("persistentvolumes.v1", "").Delete(t, name)
		plane.Objects("storageclasses.v1.storage.k8s.io", "").Delete(t, name)
	})
}

const (
	ephemeral = `
apiVersion: samples.handwerk.dev/v1alpha1
kind: EphemeralVolumeClaim
metadata: {name: scratch, labels: {team: blue}}
spec: {size: 1Gi, storageClassName: CLASS}
`
	volumes = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME}
provisioner: kubernetes.io/no-provisioner
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec:
  storageClassName: NAME
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /nowhere}
`
)
