// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/workloads"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// everything has an object of each kind.
func everything() string {
	return strings.Join([]string{
		web, db, claim, pod("loose"), job("completions: 2"),
		strings.NewReplacer("Deployment", "DaemonSet", "  replicas: 2\n", "", "name: web", "name: agent").Replace(web),
		"apiVersion: v1\nkind: Service\nmetadata: {name: lb}\nspec: {type: LoadBalancer}",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}",
	}, "\n---\n")
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(everything())
		s.advance(time.Minute)
		before := s.writes.Load()
		s.advance(24 * time.Hour)
		s.plan.Set(workloads.Rule{Kind: "Pod", Name: "none"}) // all objects are looked at again
		s.server.Expire()                                     // all objects are listed again
		s.patch("Service", "lb", `{"metadata":{"labels":{"touched":"yes"}}}`)
		s.advance(time.Hour)
		if after := s.writes.Load(); after != before || before == 0 {
			t.Errorf("%d requests were written at rest, %d before", after-before, before)
		}
	})
}

// TestWritesAreFew holds that an owner says once what has changed below it at one instant.
func TestWritesAreFew(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.advance(time.Second)
		for _, c := range []struct {
			what string
			do   func()
			most int64
		}{
			// A Pod is created, bound, and gets its status; its end is two deletions. Some owners have a revision, too.
			{"a Deployment with two Pods", func() { s.create(web) }, 1 + 2*3 + 2},
			{"another template", func() { s.patch("Deployment", "web", image) }, 1 + 2*3 + 2*2 + 3 + 4 + 1},
			{"no Pods", func() { s.patch("Deployment", "web", `{"spec":{"replicas":0}}`) }, 1 + 2*2 + 2},
			{"a StatefulSet with two Pods", func() { s.create(strings.Split(db, "  volumeClaimTemplates")[0]) }, 1 + 2*3 + 1},
			{"a DaemonSet", func() { s.create(strings.NewReplacer("Deployment", "DaemonSet", "  replicas: 2\n", "").Replace(web)) }, 1 + 3 + 1},
			{"a Job with two Pods", func() { s.create(job("completions: 2\n  parallelism: 2")) }, 2*3 + 1},
		} {
			before := s.writes.Load()
			c.do()
			s.advance(time.Minute)
			if n := s.writes.Load() - before; n > c.most {
				t.Errorf("%s: %d writes, want %d", c.what, n, c.most)
			}
		}
	})
}

func TestConflictsAndFaultsAreOvercome(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		pods := schema.GroupResource{Resource: "pods"}
		s.server.Hold(pods, schema.GroupResource{Group: "apps", Resource: "deployments"})
		s.create(web)
		s.create(pod("loose"))
		for i := range 20 {
			s.patch("Deployment", "web", fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, i))
			s.patch("Pod", "loose", fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, i))
			s.advance(100 * time.Millisecond)
		}
		s.server.Break("apps")
		s.server.Release()
		s.advance(time.Minute)
		s.server.Mend("apps")
		s.server.Cut()
		s.advance(time.Minute)
		s.shows("Deployment", done)
		if n := len(s.list("Pod")); n != 3 {
			t.Errorf("there are %d Pods, want 3", n)
		}
	})
}

func TestAPodThatIsLostIsReplaced(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.advance(time.Second)
		old := s.list("Pod")[0].GetName()
		s.delete("Pod", old)
		s.advance(time.Second)
		s.shows("Deployment", done)
		for _, p := range s.list("Pod") {
			if p.GetName() == old {
				t.Errorf("%s is still there", old)
			}
		}
	})
}

func TestManyPodsComeUpInAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 1)
		s.create(strings.Replace(web, "replicas: 2", "replicas: 500", 1))
		s.create("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}")
		s.advance(time.Second)
		s.shows("Deployment", strings.ReplaceAll(done, "=2", "=500"))
		// Three for each Pod; the rest does not grow with them.
		if n := s.writes.Load(); n > 3*500+100 {
			t.Errorf("500 Pods cost %d writes", n)
		}
	})
}

func TestWorkGrowsWithTheObjectsAlone(t *testing.T) {
	spent := func(n int) time.Duration {
		var out time.Duration
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 1)
			s.create(strings.Replace(strings.Replace(db, "replicas: 2", fmt.Sprint("replicas: ", n), 1), "serviceName", "podManagementPolicy: Parallel\n  serviceName", 1))
			s.create(strings.Replace(web, "replicas: 2", fmt.Sprint("replicas: ", n), 1))
			s.create(strings.Replace(job("completions: N"), "N", fmt.Sprint(n), 1))
			before := cpu(t)
			s.advance(time.Minute)
			out = cpu(t) - before
			if got := s.get("StatefulSet", "db").Object["status"].(map[string]any)["readyReplicas"]; got != int64(n) {
				t.Errorf("%v of %d Pods are ready", got, n)
			}
		})
		return out
	}
	spent(10)
	few, many := spent(20), spent(80)
	if many > 8*few {
		t.Errorf("4 times as many objects take %s instead of %s", many, few)
	}
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
