// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

const etcdClusters = "etcdclusters.v1alpha1.samples.handwerk.dev"

// etcdStage is where samples/etcd is at work.
type etcdStage struct {
	ns      string
	objects *cluster.Objects
	network *etcdNetwork
	kubelet *etcdKubelet
	writer  *etcdWriter
	launch  cluster.Launch
	program *cluster.Operator
}

// newEtcdStage runs the sample as a user with the rights that it asks for, and a kubelet for its Pods.
func newEtcdStage(t *testing.T) *etcdStage {
	t.Helper()
	s := &etcdStage{ns: plane.Namespace(t), network: newEtcdNetwork(t)}
	s.objects, s.kubelet, s.writer = plane.Objects(etcdClusters, s.ns), newEtcdKubelet(t, s.ns, s.network), newEtcdWriter(s.network)
	text, err := os.ReadFile("../../samples/etcd/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sample := string(text)
	for was, is := range map[string]string{
		"restartPolicy: Always": "schedulerName: none\n                  restartPolicy: Always", // nor kwok
		// No name of a Pod is known here, and etcd looks names up. These addresses are not in use.
		"http://{member}.{cluster}.{namespace}.svc:": "http://192.0.2.{number}:",
	} {
		if !strings.Contains(sample, was) {
			t.Fatalf("the sample has no %q", was)
		}
		sample = strings.ReplaceAll(sample, was, is)
	}
	user := plane.User("etcd")
	user.AllowIn(t, s.ns,
		cluster.Rule("samples.handwerk.dev", "etcdclusters", "get", "list", "watch", "patch"),
		cluster.Rule("samples.handwerk.dev", "etcdclusters/status", "patch"),
		cluster.Rule("", "configmaps", "get", "create", "update"), // the register
		made("", "pods"), made("", "services"), made("policy", "poddisruptionbudgets"), made("networking.k8s.io", "networkpolicies"),
		made("batch", "cronjobs"), made("batch", "jobs"), eventRule())
	s.launch = cluster.Launch{
		Main: "samples/etcd", Config: user.Config(), Args: []string{"run", "--config", write(t, sample), "-n", s.ns}, Env: s.network.environment(),
	}
	t.Cleanup(func() {
		s.writer.stop()
		if t.Failed() {
			t.Logf("the members said:\n%s", s.kubelet.logs())
		}
	})
	s.program = plane.Operator(t, s.launch)
	return s
}

// member is a member as the status has it.
type member struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Learner bool   `json:"learner"`
	Alive   bool   `json:"alive"`
	Healthy bool   `json:"healthy"`
	// Outdated and Restarting are as in the sample.
	Outdated   bool `json:"outdated"`
	Restarting bool `json:"restarting"`
}

func membersOf(t *testing.T, o *unstructured.Unstructured) []member {
	t.Helper()
	var status struct {
		Members []member `json:"members"`
	}
	tree, _, _ := unstructured.NestedMap(o.Object, "status")
	decode(t, &unstructured.Unstructured{Object: tree}, &status)
	return status.Members
}

func etcdNames(members []member) (out []string) {
	for _, m := range members {
		out = append(out, m.Name)
	}
	return out
}

// resize asks for another size.
func (s *etcdStage) resize(t *testing.T, size int) {
	t.Helper()
	s.objects.Patch(t, "db", fmt.Sprintf(`{"spec":{"size":%d}}`, size))
}

// settles waits until the cluster is steady with these members, and holds that etcd and the Pods say the same.
func (s *etcdStage) settles(t *testing.T, names ...string) {
	t.Helper()
	o := s.objects.Await(t, "db", fmt.Sprintf("members %v, all well", names), func(o *unstructured.Unstructured) bool {
		well := func(m member) bool {
			return m.Alive && m.Healthy && !m.Learner && m.ID != "" && !m.Outdated && !m.Restarting
		}
		members := membersOf(t, o)
		return field(o, "status", "state") == "Steady" && cluster.Condition(o, "Ready") == "True" && cmp.Equal(names, etcdNames(members)) &&
			!slices.ContainsFunc(members, func(m member) bool { return !well(m) })
	})
	if got := cluster.Condition(o, "Available"); got != "True" {
		t.Errorf("condition Available is %q", got)
	}
	for name, address := range s.network.members() {
		eventually(t, fmt.Sprintf("%s to know members %v", name, names), func() (bool, string) {
			members, err := etcd.Members(t.Context(), address) // on a busy machine it may not answer at once
			var known []string
			for _, m := range members {
				known = append(known, m.Name)
			}
			slices.Sort(known)
			return err == nil && cmp.Equal(names, known), fmt.Sprintf("%v, %v", known, err)
		})
	}
	eventually(t, fmt.Sprintf("Pods %v", names), func() (bool, string) {
		var pods []string
		for _, pod := range plane.Objects("pods.v1", s.ns).List(t) {
			pods = append(pods, pod.GetName())
		}
		return cmp.Equal(names, pods), fmt.Sprint(pods)
	})
}

// leader returns the name of the member that leads.
func (s *etcdStage) leader(t *testing.T) (found string) {
	t.Helper()
	eventually(t, "a leader", func() (bool, string) {
		for name, address := range s.network.members() {
			if status, err := etcd.StatusOf(t.Context(), address); err == nil && status.ID == status.Leader {
				found = name
			}
		}
		return found != "", ""
	})
	return found
}

// etcdCluster is an EtcdCluster.
func etcdCluster(size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "EtcdCluster", "metadata": map[string]any{"name": "db"},
		"spec": map[string]any{"size": size},
	}}
}

// TestEtcdSample leads a cluster of real etcd processes through sizes, the loss of its leader's data, a member that does not answer
// for a while and a crash of the operator, while somebody writes to it all the time: no write that was acknowledged is lost, and
// there is never more than one change.
func TestEtcdSample(t *testing.T) {
	t.Parallel()
	s := newEtcdStage(t)
	s.objects.Create(t, etcdCluster(1))
	s.settles(t, "db-0")
	s.writer.start(t.Context())

	s.writing(t, "it grew from one member to three", func() {
		s.resize(t, 3)
		s.settles(t, "db-0", "db-1", "db-2")
	})
	names := []string{"db-0", "db-1", "db-2", "db-3", "db-4"}
	s.writing(t, "it grew from three members to five, with a crash in between", func() {
		crashed := s.network.crashAtAdd(s.program.Kill) // etcd has added db-3, and it is not written down
		s.resize(t, 5)
		<-crashed
		s.program = plane.Operator(t, s.launch)
		s.settles(t, names...)
	})
	s.writing(t, "its leader was replaced", func() {
		lost := s.leader(t)
		s.kubelet.evict(t, lost)
		names = append(slices.DeleteFunc(names, func(name string) bool { return name == lost }), "db-5")
		before := s.writer.count()
		s.settles(t, names...)
		// A replacement may be done in less than the time that a writer and an election need.
		eventually(t, "writes with another leader", func() (bool, string) {
			n := s.writer.count() - before
			return n >= 10, fmt.Sprint(n)
		})
	})
	s.writing(t, "it waited for a member, and shrank from five members to three then", func() {
		s.waits(t, names[0], 3)
		s.objects.Await(t, "db", "three members", func(o *unstructured.Unstructured) bool {
			names = etcdNames(membersOf(t, o)) // the leader is not removed, whichever that is
			return field(o, "status", "state") == "Steady" && len(names) == 3
		})
		s.settles(t, names...)
	})
	s.writing(t, "it grew once more", func() {
		s.resize(t, 5)
		names = append(names, "db-6", "db-7")
		s.settles(t, names...)
	})

	acknowledged := s.writer.stop()
	t.Logf("%d writes were acknowledged", len(acknowledged))
	s.holds(t, acknowledged)
	added, removed := []string{"add", "promote"}, []string{"remove"}
	want := slices.Concat(added, added, added, added, removed, added, removed, removed, added, added)
	changes, overlaps := s.network.made()
	if diff := cmp.Diff(want, changes); diff != "" || overlaps != 0 {
		t.Errorf("%d changes began while another one was made; all of them (-want +got):\n%s", overlaps, diff)
	}
	s.perishes(t, names)
	if exit := s.program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, s.program.Lines)
}

// writing holds that writes are acknowledged while something is done.
func (s *etcdStage) writing(t *testing.T, what string, do func()) {
	t.Helper()
	before := s.writer.count()
	do()
	if n := s.writer.count() - before; n < 10 {
		t.Errorf("%d writes were acknowledged while %s", n, what)
	}
}

// waits kills the process of a member, which has its data when it comes back, and asks for fewer members before that. Etcd would
// let one of the others go, and then the cluster could lose none any more: nothing is changed until the member is back.
func (s *etcdStage) waits(t *testing.T, name string, size int) {
	t.Helper()
	before, _ := s.network.made()
	defer s.kubelet.hold(t, name)()
	s.resize(t, size)
	s.objects.Await(t, "db", "state Degraded with another size", func(o *unstructured.Unstructured) bool {
		seen := strings.Contains(asJSON(t, field(o, "status", "conditions")), fmt.Sprintf(`"observedGeneration":%d`, o.GetGeneration()))
		return field(o, "status", "state") == "Degraded" && field(o, "spec", "size") == int64(size) && seen
	})
	if after, _ := s.network.made(); !cmp.Equal(before, after) {
		t.Errorf("while %s did not answer, members were changed: %v", name, after[len(before):])
	}
}

// holds reads all writes that were acknowledged from each member, as a quorum has them.
func (s *etcdStage) holds(t *testing.T, acknowledged []string) {
	t.Helper()
	if len(acknowledged) < 100 {
		t.Errorf("only %d writes were acknowledged", len(acknowledged))
	}
	for name, address := range s.network.members() {
		there, err := readAll(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		var missing []string
		for _, key := range acknowledged {
			if there[key] != key {
				missing = append(missing, key)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s lacks %d of %d writes that were acknowledged: %v", name, len(missing), len(acknowledged), missing)
		}
	}
}

// perishes takes more members away than a cluster can lose, and has a person begin again.
func (s *etcdStage) perishes(t *testing.T, names []string) {
	t.Helper()
	s.kubelet.evict(t, names[:3]...)
	o := s.objects.Await(t, "db", "state Lost", func(o *unstructured.Unstructured) bool { return field(o, "status", "state") == "Lost" })
	if text := asJSON(t, field(o, "status", "conditions")); !strings.Contains(text, "goto=Creating") {
		t.Errorf("nothing says what a person can do: %s", text)
	}
	awaitEvent(t, s.ns, "db", "Lost", 1)
	s.objects.Patch(t, "db", `{"spec":{"size":1},"metadata":{"annotations":{"etcd.handwerk.dev/goto":"Creating"}}}`)
	s.objects.Await(t, "db", "a new cluster", func(o *unstructured.Unstructured) bool {
		names = etcdNames(membersOf(t, o))
		return field(o, "status", "state") == "Steady" && len(names) == 1
	})
	s.settles(t, names...)
	if address := s.network.members()[names[0]]; address != "" {
		if there, err := readAll(t.Context(), address); err != nil || len(there) != 0 {
			t.Errorf("the new cluster has %d keys, %v", len(there), err)
		}
	}
}

// TestEtcdSampleSavesItsDataBeforeItGoes holds that snapshots are made on the schedule that the object says, and that the object
// stays until the last one is there.
func TestEtcdSampleSavesItsDataBeforeItGoes(t *testing.T) {
	t.Parallel()
	s := newEtcdStage(t)
	saved := etcdCluster(1)
	saved.Object["spec"].(map[string]any)["backup"] = map[string]any{"schedule": "0 3 * * *", "claim": "backups"}
	db := s.objects.Create(t, saved)
	s.settles(t, "db-0")
	plane.Objects("cronjobs.v1.batch", s.ns).Await(t, "db-backup", "its schedule", func(o *unstructured.Unstructured) bool {
		return field(o, "spec", "schedule") == "0 3 * * *"
	})

	s.objects.Delete(t, "db")
	jobs, last := plane.Objects("jobs.v1.batch", s.ns), ""
	eventually(t, "the last Job", func() (bool, string) {
		for _, job := range jobs.List(t) {
			if strings.HasPrefix(job.GetName(), "db-last-backup-") {
				last = job.GetName()
			}
		}
		return last != "", ""
	})
	if now := s.objects.Get(t, "db"); now == nil || now.GetUID() != db.GetUID() {
		t.Fatal("the cluster has not waited for its last snapshot")
	}
	first := jobs.Get(t, last)
	jobs.Delete(t, last) // as a person does who wants another attempt
	var again *unstructured.Unstructured
	eventually(t, "another attempt", func() (bool, string) {
		again = jobs.Get(t, last)
		return again != nil && again.GetUID() != first.GetUID(), ""
	})
	pods := plane.Objects("pods.v1", s.ns)
	eventually(t, "the snapshot to be saved", func() (bool, string) {
		for _, pod := range pods.List(t) {
			if pod.GetLabels()["batch.kubernetes.io/controller-uid"] == string(again.GetUID()) {
				pods.Patch(t, pod.GetName(), `{"status":{"phase":"Succeeded"}}`, "status")
				return true, ""
			}
		}
		return false, ""
	})
	s.objects.AwaitGone(t, "db")
	if jobs.Get(t, last) == nil {
		t.Error("the last Job has gone with the cluster")
	}
}

// TestEtcdSampleRefusesSizes holds that the API server says what is wrong with a size.
func TestEtcdSampleRefusesSizes(t *testing.T) {
	t.Parallel()
	objects := plane.Dynamic().Resource(etcdGVR).Namespace(plane.Namespace(t))
	for _, size := range []int64{-1, 0, 2, 4, 9} {
		_, err := objects.Create(t.Context(), etcdCluster(size), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "an etcd cluster has 1, 3, 5 or 7 members") {
			t.Errorf("size %d: %v", size, err)
		}
	}
	made, err := objects.Create(t.Context(), etcdCluster(7), metav1.CreateOptions{})
	if err != nil || made.GetName() != "db" {
		t.Errorf("size 7: %v", err)
	}
}
