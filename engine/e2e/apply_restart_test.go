// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// launch starts the program with an operator that keeps the children, in the stage's namespace and in
// others.
func (s *applyStage) launch(t *testing.T, children string, others ...string) *cluster.Operator {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(partsOperator("apply", children)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--config", file}
	for _, ns := range append([]string{s.ns}, others...) {
		args = append(args, "-n", ns)
	}
	return plane.Operator(t, cluster.Launch{Config: s.user.Config(), Args: args})
}

// TestApplyIsKilledWhileItTakesAway: the next process goes on where the last one was.
func TestApplyIsKilledWhileItTakesAway(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *applyStage){
		"because they are wanted no more": func(t *testing.T, s *applyStage) { s.works.Patch(t, "w", `{"spec":{"value":"none"}}`) },
		"because the owner goes":          func(t *testing.T, s *applyStage) { s.works.Delete(t, "w") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := plane.Namespace(t)
			s := newApplyStage(t, []string{other}, made("", "configmaps"))
			children := strings.ReplaceAll(beside+chain, "OTHER", other)
			program, l := s.launch(t, children, other), linksOf(s.ns, other)
			s.works.Create(t, work("w", "a"))
			l.hold(t)
			s.applied(t, "w")
			end(t, s)
			for _, at := range []int{2, 1, 0} {
				l.mustGo(t, at)
				program.Kill()
				l.free(t, at) // while no process looks
				program = s.launch(t, children, other)
			}
			if s.works.Get(t, "w").GetDeletionTimestamp() == nil {
				s.applied(t, "w")
				s.works.Delete(t, "w")
			}
			s.works.AwaitGone(t, "w")
		})
	}
}

// TestApplyIsKilledWhileItRollsOut: over many processes, never more than one is unready.
func TestApplyIsKilledWhileItRollsOut(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("apps", "deployments"))
	program := s.launch(t, beside+shardsOf)
	all := newShards(t, s)
	s.works.Patch(t, "w", `{"spec":{"value":"v2"}}`)
	for i := range 4 {
		all.awaitImage(t, i, "v2")
		program.Kill()
		if i%2 == 0 {
			all.say(t, i, "v2") // while no process looks
		}
		program = s.launch(t, beside+shardsOf)
		program.Await(t, "operator starts")
		if i%2 != 0 {
			s.quiesce(t, "w")
			all.mustBe(t, "begun again", slices.Concat(slices.Repeat([]string{"v2"}, i+1), slices.Repeat([]string{"v1"}, 3-i))...)
			all.say(t, i, "v2")
		}
	}
	s.applied(t, "w")
	all.mustHaveBeenOneByOne(t)
}

// everyKind are children of all kinds of [fixed] and [drifting], and the [chain].
func everyKind(other string) string {
	var out strings.Builder
	out.WriteString(beside + drifting + strings.ReplaceAll(chain, "OTHER", other))
	kinds := fixed()
	for i, name := range slices.Sorted(maps.Keys(kinds)) {
		child := strings.ReplaceAll(kinds[name].child, "-fixed", fmt.Sprint("-fixed", i))
		fmt.Fprintf(&out, "fixed%d:%s\n", i, indented(child, 2))
	}
	return out.String()
}

// TestApplyIsQuietInTheEnd: a new process writes nothing, and neither do resyncs, whatever the kind
// of the children.
func TestApplyIsQuietInTheEnd(t *testing.T) {
	t.Parallel()
	other := plane.Namespace(t)
	s := newApplyStage(t, []string{other},
		made("", "configmaps,secrets,services,persistentvolumeclaims,serviceaccounts,pods"), made("autoscaling", "horizontalpodautoscalers"),
		made("apps", "deployments,statefulsets"), made("batch", "jobs"), made("rbac.authorization.k8s.io", "rolebindings"),
		cluster.Rule("rbac.authorization.k8s.io", "roles", "bind"))
	s.run(t, everyKind(other), other)
	s.works.Create(t, work("w", "b")) // with which the server rewrites nothing
	s.applied(t, "w")
	s.quiesce(t, "w")
	before := s.works.Get(t, "w")
	s.running.Stop(t)

	mark := plane.Mark(t)
	op := parsed(t, partsOperator("apply", everyKind(other), "resync: 1s"), s.ns, other)
	running := cluster.Run(t, op, engine.Settings{Config: s.user.Config()})
	running.AwaitReady(t)
	running.AwaitTimes(t, 3, `"cause"="resync"`)
	if writes := plane.Writes(t, s.user.Name, mark); len(writes) > 0 {
		t.Errorf("a new process and two resyncs wrote:\n%s", writes)
	}
	if after := s.works.Get(t, "w"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the work became %v", after.Object)
	}
}

// talkative is a child whose status the test changes, and reported an operator's second handler that
// puts what the status says into the work's own.
const (
	talkative = `
service: {apiVersion: v1, kind: Service, metadata: {name: "${self.metadata.name}-service"}, spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}}
`
	reported = `      - id: status
        set: {status: {said: "${children.service.?status.?loadBalancer.?ingress[?0].?hostname.orValue('')}"}}
`
)

// TestApplyIsQuietWhileChildrenTalk: statuses of children are no reason to write to children, and to
// the owner only when it reports them, at most once for each. No handler runs where none looks at them.
func TestApplyIsQuietWhileChildrenTalk(t *testing.T) {
	t.Parallel()
	const times = 20
	for name, test := range map[string]struct {
		more string
		most int
	}{
		"when the owner's status does not show it": {"", 0},
		"when the owner's status shows it":         {reported, times},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApplyStage(t, nil, made("", "configmaps,services"))
			op := parsed(t, partsOperator("apply", beside+talkative)+test.more, s.ns)
			s.running = cluster.Run(t, op, engine.Settings{Config: s.user.Config()})
			owner := s.works.Create(t, work("w", "a"))
			s.applied(t, "w")
			s.quiesce(t, "w")
			services, mark := plane.Objects("services.v1", s.ns), plane.Mark(t)
			before := len(s.running.With(`"cause"="child"`))
			for i := range times {
				services.Patch(t, "w-service", fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"hostname":"h%d.example.com"}]}}}`, i), "status")
			}
			if test.most > 0 {
				s.works.Await(t, owner.GetName(), "the last word", func(o *unstructured.Unstructured) bool {
					return status(o, "said") == fmt.Sprintf("h%d.example.com", times-1)
				})
			}
			looks := func() bool { return len(s.running.With(`"cause"="child"`)) > before }
			if test.most == 0 {
				s.quiesce(t, "w")
				if writes := plane.Writes(t, s.user.Name, mark).Of("services", "w-service"); looks() || len(writes) > 0 {
					t.Errorf("handlers ran for a status that none of them looks at, or wrote to the child: %t\n%s", looks(), writes)
				}
				return
			}
			waitFor(t, "a look at the child", looks)
			writes := plane.Writes(t, s.user.Name, mark)
			if n := len(writes.Of("works", "w")); n > test.most || n != len(writes) {
				t.Errorf("%d changes of a child's status made these writes:\n%s", times, writes)
			}
		})
	}
}
