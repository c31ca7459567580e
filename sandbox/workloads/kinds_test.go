// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func pod(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %[1]s}}
spec: {containers: [{name: app, image: app}]}`, name)
}

const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

const db = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

func TestAStatefulSetMakesItsPodsInOrder(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(db)
		s.shows("Pod", "db-0 phase=Pending Ready:False/ContainersNotReady InProgress")
		s.shows("PersistentVolumeClaim", "data-db-0 phase=Bound Current")
		s.advance(5 * time.Second)
		s.shows("Pod", "db-0 phase=Running Ready:True Current", "db-1 phase=Pending Ready:False/ContainersNotReady InProgress")
		s.shows("StatefulSet", "db wanted=2 replicas=2 updated=2 ready=1 available=1 InProgress")
		s.advance(5 * time.Second)
		s.shows("StatefulSet", "db wanted=2 replicas=2 updated=2 ready=2 available=2 Current")
		s.patch("StatefulSet", "db", `{"spec":{"template":{"spec":{"containers":[{"name":"db","image":"db:2"}]}}}}`)
		s.advance(10 * time.Second)
		s.shows("StatefulSet", "db wanted=2 replicas=2 updated=1 ready=1 available=1 InProgress")
		s.advance(10 * time.Second)
		s.shows("StatefulSet", "db wanted=2 replicas=2 updated=2 ready=2 available=2 Current")
		s.patch("StatefulSet", "db", `{"spec":{"replicas":1}}`)
		s.advance(5 * time.Second)
		s.shows("Pod", "db-0 phase=Running Ready:True Current")
		s.shows("PersistentVolumeClaim", "data-db-0 phase=Bound Current", "data-db-1 phase=Bound Current")
		s.shows("StatefulSet", "db wanted=1 replicas=1 updated=1 ready=1 available=1 Current")
	}, workloads.Rule{Kind: "StatefulSet", Delay: 5 * time.Second})
}

func TestClaimsGoWithTheirPodsAndTheirStatefulSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStageOn(t, server.New(server.Settings{Controllers: true}), 1)
		s.create(strings.Replace(db, "  replicas: 2", "  replicas: 2\n  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}", 1))
		s.advance(time.Second)
		s.shows("PersistentVolumeClaim", "data-db-0 phase=Bound Current", "data-db-1 phase=Bound Current")
		s.patch("StatefulSet", "db", `{"spec":{"replicas":1}}`)
		s.advance(time.Minute)
		s.shows("PersistentVolumeClaim", "data-db-0 phase=Bound Current")
		s.delete("StatefulSet", "db")
		s.advance(time.Minute)
		s.shows("PersistentVolumeClaim")
	})
}

func TestAPodWaitsForItsClaims(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(db)
		s.advance(time.Second)
		s.shows("Pod", "db-0 phase=Pending InProgress")
		s.shows("PersistentVolumeClaim", "data-db-0 phase=Pending InProgress")
		s.plan.Set(workloads.Rule{Kind: "PersistentVolumeClaim"})
		s.shows("StatefulSet", "db wanted=2 replicas=2 updated=2 ready=2 available=2 Current")
	}, workloads.Rule{Kind: "PersistentVolumeClaim", Fail: "ProvisioningFailed"})
}

func TestAVolumeGoesWithItsClaim(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(claim)
		s.shows("PersistentVolumeClaim", "data phase=Bound Current")
		if got := s.list("PersistentVolume"); len(got) != 1 || !strings.Contains(shown(t, &got[0]), "phase=Bound") {
			t.Errorf("the volumes are %v", got)
		}
		s.delete("PersistentVolumeClaim", "data")
		s.shows("PersistentVolume")
	})
}

func TestADaemonSetHasAPodOnEachNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 3)
		s.create(strings.NewReplacer("Deployment", "DaemonSet", "  replicas: 2\n", "").Replace(web))
		s.shows("DaemonSet", "web desiredNumberScheduled=3 numberReady=3 Current")
		nodes := map[string]int{}
		for _, p := range s.list("Pod") {
			node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
			nodes[node]++
		}
		if diff := cmp.Diff(map[string]int{"node-0": 1, "node-1": 1, "node-2": 1}, nodes); diff != "" {
			t.Errorf("Pods by nodes (-want +got):\n%s", diff)
		}
		s.patch("DaemonSet", "web", image)
		s.shows("DaemonSet", "web desiredNumberScheduled=3 numberReady=3 Current")
		for _, p := range s.list("Pod") {
			if !strings.Contains(fmt.Sprint(p.Object["spec"]), "web:2") {
				t.Errorf("%s has the old template", p.GetName())
			}
		}
	})
}

func TestServicesHaveAddresses(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		for name, kind := range map[string]string{"plain": "ClusterIP", "outside": "LoadBalancer", "elsewhere": "ExternalName"} {
			s.create(fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: %s, ports: [{port: 80}]}", name, kind))
		}
		s.create("apiVersion: v1\nkind: Service\nmetadata: {name: headless}\nspec: {clusterIP: None}")
		s.create("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: in}\nspec: {}")
		s.advance(4 * time.Second)
		s.shows("Service", "elsewhere Current", "headless Current", "outside Current", "plain Current")
		address := func(kind, name string) string {
			list, _, _ := unstructured.NestedSlice(s.get(kind, name).Object, "status", "loadBalancer", "ingress")
			return fmt.Sprint(list)
		}
		if got := address("Service", "outside"); got != "[]" {
			t.Errorf("the load balancer has its address early: %s", got)
		}
		s.advance(time.Second)
		if got := address("Service", "outside"); !strings.Contains(got, "ip:198.18.0.1") {
			t.Errorf("the load balancer has the address %s", got)
		}
		if got := address("Ingress", "in"); !strings.Contains(got, "ip:198.18.0.1") {
			t.Errorf("the Ingress has the address %s", got)
		}
		if ip, _, _ := unstructured.NestedString(s.get("Service", "elsewhere").Object, "spec", "clusterIP"); ip != "" {
			t.Errorf("a name elsewhere has the cluster IP %s", ip)
		}
	}, workloads.Rule{Delay: 5 * time.Second})
}

func TestABudgetCountsItsPods(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}")
		s.shows("PodDisruptionBudget", "web currentHealthy=0 disruptionsAllowed=0 Current")
		s.create(web)
		s.create(pod("other"))
		s.shows("PodDisruptionBudget", "web currentHealthy=2 disruptionsAllowed=1 Current")
	})
}

func TestABudgetDoesNotCountAPodThatIsEvicted(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}")
		s.create(web)
		s.shows("PodDisruptionBudget", "web currentHealthy=2 disruptionsAllowed=1 Current")
		evicted := fmt.Sprintf(`{"status":{"disruptedPods":{%q:%q,"gone":%[2]q}}}`, s.list("Pod")[0].GetName(), time.Now().UTC().Format(time.RFC3339))
		if _, err := s.of("PodDisruptionBudget", "policy/v1").Patch(t.Context(), "web", types.MergePatchType, []byte(evicted), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		s.shows("PodDisruptionBudget", "web currentHealthy=1 disruptionsAllowed=0 Current")
		if left, _, _ := unstructured.NestedMap(s.get("PodDisruptionBudget", "web").Object, "status", "disruptedPods"); len(left) != 1 {
			t.Errorf("evicted are %v", left)
		}
		s.advance(2 * time.Minute) // the server has said that it is going to be deleted, but that did not happen
		s.shows("PodDisruptionBudget", "web currentHealthy=2 disruptionsAllowed=1 Current")
	})
}

func TestAPodWaitsForANodeThatTakesIt(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		synctest.Wait()
		for _, closed := range []string{`{"spec":{"unschedulable":true}}`, `{"spec":{"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}}`} {
			s.patch("Node", "node-0", closed)
			synctest.Wait() // nodes and Pods are seen by watches of their own
			s.create(pod("waits"))
			s.shows("Pod", "waits phase=Pending InProgress")
			s.patch("Node", "node-0", `{"spec":{"unschedulable":null,"taints":null}}`)
			s.shows("Pod", "waits phase=Running Ready:True Current")
			s.delete("Pod", "waits")
			synctest.Wait()
		}
		s.patch("Node", "node-0", `{"spec":{"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}}`)
		s.create(strings.Replace(pod("tolerant"), "spec: {", "spec: {tolerations: [{key: a, operator: Exists}], ", 1))
		s.shows("Pod", "tolerant phase=Running Ready:True Current")
	})
}

// TestANodeThatIsDeletedStaysAway holds that the nodes of users are their own, and those that there are always come back.
func TestANodeThatIsDeletedStaysAway(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		synctest.Wait()
		s.create("apiVersion: v1\nkind: Node\nmetadata: {name: mine}\nspec: {taints: [{key: a, effect: NoSchedule}]}")
		synctest.Wait()
		for _, name := range []string{"mine", "node-0"} {
			s.delete("Node", name)
		}
		s.advance(time.Minute)
		var got []string
		for _, n := range s.list("Node") {
			got = append(got, n.GetName())
		}
		if diff := cmp.Diff([]string{"node-0"}, got); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
	})
}
