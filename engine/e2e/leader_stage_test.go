// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const (
	leases = "leases.v1.coordination.k8s.io"
	lock   = "foo-leader"

	// How the leader is found in these tests: quickly.
	leaseDuration = 5 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = 500 * time.Millisecond
	// lockTimeout is what client-go says on a busy machine: a request for the lock took longer than
	// half the deadline, and comes again.
	lockTimeout = "Client.Timeout exceeded while awaiting headers"
)

// lockRules are the rights of deploy's role for an operator's lock, in any mode.
func lockRules(lock string) []rbacv1.PolicyRule {
	named := cluster.Rule("coordination.k8s.io", "leases", "get", "watch", "update", "delete")
	named.ResourceNames = []string{lock}
	return []rbacv1.PolicyRule{
		named,
		cluster.Rule("coordination.k8s.io", "leases", "create"),
		cluster.Rule("", "pods", "get"),
	}
}

// contender is one process of an operator, with a user and a pod of its own.
type contender struct {
	*cluster.Operator
	pod    string
	user   *cluster.User
	launch cluster.Launch
}

// The settings of the modes, as YAML.
var (
	byLease = fmt.Sprintf("{mode: lease, leaseDuration: %s, renewDeadline: %s, retryPeriod: %s}", leaseDuration, renewDeadline, retryPeriod)
	forLife = "{mode: life}"
)

// contenders starts no process yet, but prepares them, with rights in one namespace.
func contenders(t *testing.T, ns, election string, number int) []*contender {
	t.Helper()
	config := filepath.Join(t.TempDir(), "operator.yaml")
	sample, err := os.ReadFile("../../samples/foo/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(sample), "    owns:", "    workers: 20\n    owns:", 1) + "settings:\n  leaderElection: " + election + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := make([]*contender, number)
	for i := range all {
		c := &contender{pod: fmt.Sprint("op-", i), user: plane.User(fmt.Sprint("op-", i))}
		c.user.AllowIn(t, ns, append(fooRules(), lockRules(lock)...)...)
		c.launch = cluster.Launch{
			Config: c.user.Config(), Args: []string{"run", "--config", config, "-n", ns},
			Env: []string{"POD_NAME=" + c.pod, "POD_NAMESPACE=" + ns},
		}
		all[i] = c
	}
	return all
}

// start starts the contender's process, or its next one.
func (c *contender) start(t *testing.T) {
	t.Helper()
	c.Operator = plane.Operator(t, c.launch)
}

// awaitStandby waits until the contender is ready and waits.
func (c *contender) awaitStandby(t *testing.T) {
	t.Helper()
	awaitReadyz(t, c.Operator, "[+]started ok: standing by: another process leads")
}

// awaitLeader waits until one of these contenders holds the lock, and returns it and the others.
func awaitLeader(t *testing.T, ns string, among ...*contender) (leader *contender, others []*contender, lease coordinationv1.Lease) {
	t.Helper()
	plane.Objects(leases, ns).Await(t, lock, "a leader", func(o *unstructured.Unstructured) bool {
		lease = coordinationv1.Lease{}
		decode(t, o, &lease)
		holder := holderOf(&lease)
		i := slices.IndexFunc(among, func(c *contender) bool { return c.pod == holder })
		if i < 0 {
			return false
		}
		leader, others = among[i], slices.Delete(slices.Clone(among), i, i+1)
		return true
	})
	return leader, others, lease
}

// holderOf is the pod that holds the lock, empty when there is none.
func holderOf(lease *coordinationv1.Lease) (pod string) {
	if lease.Spec.HolderIdentity != nil {
		pod, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	}
	return pod
}

// watchHolders watches who holds the lock. The function that it returns waits until this pod does, and
// returns all that held it since, in their order; an empty name stands for no holder.
func watchHolders(t *testing.T, ns string) (until func(pod string) []string) {
	t.Helper()
	w, err := plane.Kubernetes().CoordinationV1().Leases(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + lock})
	if err != nil {
		t.Fatalf("watching the lock: %v", err)
	}
	t.Cleanup(w.Stop)
	return func(pod string) (holders []string) {
		t.Helper()
		late := time.After(cluster.Patience)
		for !slices.Contains(holders, pod) {
			select {
			case event, open := <-w.ResultChan():
				lease, is := event.Object.(*coordinationv1.Lease)
				if !open || !is {
					t.Fatalf("the watch of the lock ended with %v before %s held it", event.Object, pod)
				}
				if holder := holderOf(lease); len(holders) == 0 || holders[len(holders)-1] != holder {
					holders = append(holders, holder)
				}
			case <-late:
				t.Fatalf("%s does not hold the lock, after %q", pod, holders)
			}
		}
		return holders
	}
}

// mustNotHaveWritten holds that contenders sent no write, nor Events.
func mustNotHaveWritten(t *testing.T, since cluster.Mark, idle ...*contender) {
	t.Helper()
	for _, c := range idle {
		if got := plane.Writes(t, c.user.Name, since, "events"); len(got) != 0 {
			t.Errorf("writes of %s, which does not lead:\n%v", c.pod, got)
		}
	}
}
