// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/samples/etcd/etcd"
)

func TestEtcdMembership(t *testing.T) {
	const refused = `{"code":9,"message":"etcdserver: can only promote a learner member which is in sync with leader"}`
	tests := map[string]struct {
		function string
		run      func(*testing.T) *run
		// members are those in the status then, did what was done to etcd and to Pods.
		members, did []string
		next         any
		// waits is what is waited for, fails what the error has.
		waits, fails string
	}{
		"the first member is made": {
			function: "etcd.Create", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) { e.pods.pods, e.next = map[string]map[string]any{}, 0 })
			},
			members: []string{"c-0 alive"}, did: []string{"make c-0"}, next: int64(1),
		},
		"a new cluster has a new member, and Pods of the old one go": {
			function: "etcd.Create", run: func(t *testing.T) *run { return up(t, 0, 1) },
			members: []string{"c-2 alive"}, did: []string{"delete c-0", "delete c-1", "make c-2"}, next: int64(3),
		},
		"a Pod of the first member that is there is not made again": {
			function: "etcd.Create", run: func(t *testing.T) *run { return up(t, 0).with(func(e *run) { e.next = 0 }) },
			members: []string{"c-0 alive"}, next: int64(1),
		},
		"a look finds what is well and what is not": {
			function: "etcd.Look", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2, 10).with(func(e *run) {
					e.etcd.members["c-1"].down = true
					delete(e.pods.pods, "c-1")
					e.joins("c-11", false)
					e.pod("c-11", "Running")
				})
			},
			members: []string{"c-0 alive healthy", "c-1", "c-2 alive healthy", "c-10 alive healthy", "c-11 learner alive healthy"},
		},
		"a Pod that has ended is not alive": {
			function: "etcd.Look", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) { e.pod("c-1", "Failed"); e.etcd.members["c-1"].down = true })
			},
			members: []string{"c-0 alive healthy", "c-1", "c-2 alive healthy"},
		},
		"nor is one whose Pod is being deleted": {
			function: "etcd.Look", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) {
					e.pods.pods["c-2"]["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
				})
			},
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2"},
		},
		"without a quorum those count that were known": {
			function: "etcd.Look", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) {
					e.known = []any{map[string]any{"name": "c-1", "healthy": true}, map[string]any{"name": "c-2", "alive": true}}
					e.etcd.members["c-0"].down, e.etcd.members["c-2"].down = true, true
					delete(e.pods.pods, "c-2")
				})
			},
			members: []string{"c-1 alive", "c-2"},
		},
		"a member that somebody else has added is reported": {
			function: "etcd.Look", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) { e.etcd.members["foreign"] = &fakeMember{id: 7, learner: true} })
			},
			fails: "(peer URLs http://foreign.peer) was not added by this operator: remove it by hand",
		},
		"a member is added as a learner, and then its Pod is made": {
			function: "etcd.Add", run: func(t *testing.T) *run { return up(t, 0, 1, 2).with(func(e *run) { e.size = 5 }) },
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2 alive healthy", "c-3 learner alive"},
			did:     []string{"add c-3", "make c-3"}, next: int64(4),
		},
		"one that was added before a crash is found again": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) { e.size = 4; e.joins("c-3", true) })
			},
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2 alive healthy", "c-3 learner alive"},
			did:     []string{"make c-3"}, next: int64(4),
		},
		"one whose Pod was made before a crash is found again": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) { e.size = 3; e.joins("c-1", true); e.pod("c-1", "Pending") })
			},
			members: []string{"c-0 alive healthy", "c-1 learner alive"}, next: int64(2),
		},
		"a number that a restored object has forgotten is not used again": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) { e.size = 5; e.next = 1; e.pod("c-3", "Running") })
			},
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2 alive healthy", "c-4 learner alive"},
			did:     []string{"add c-4", "make c-4"}, next: int64(5),
		},
		"none is added where there are enough": {
			function: "etcd.Add", run: func(t *testing.T) *run { return up(t, 0, 1, 2) },
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2 alive healthy"},
		},
		"none is added beside a learner": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) { e.size = 3; e.next = 2; e.joins("c-1", true); e.pod("c-1", "Running") })
			},
			members: []string{"c-0 alive healthy", "c-1 learner alive"},
		},
		"none is added while one is not healthy": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) { e.size = 5; e.etcd.members["c-1"].down = true })
			},
			members: []string{"c-0 alive healthy", "c-1 alive", "c-2 alive healthy"},
		},
		"none is added while etcd does not want it, and no Pod is made": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) {
					e.size, e.etcd.refuses = 3, `{"code":14,"message":"etcdserver: unhealthy cluster"}`
				})
			},
			members: []string{"c-0 alive healthy"}, waits: "unhealthy cluster",
		},
		"a refusal for good is an error that names the member": {
			function: "etcd.Add", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) {
					e.size, e.etcd.refuses = 3, `{"code":9,"message":"etcdserver: too many learner members in cluster"}`
				})
			},
			members: []string{"c-0 alive healthy"}, fails: "adding member c-1 to c: asking http://",
		},
		"a learner that works is promoted": {
			function: "etcd.Promote", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) { e.joins("c-1", false); e.pod("c-1", "Running") })
			},
			members: []string{"c-0 alive healthy", "c-1 alive healthy"}, did: []string{"promote c-1"},
		},
		"one that is behind is waited for": {
			function: "etcd.Promote", run: func(t *testing.T) *run {
				return up(t, 0).with(func(e *run) { e.joins("c-1", false); e.pod("c-1", "Running"); e.etcd.refuses = refused })
			},
			members: []string{"c-0 alive healthy", "c-1 learner alive healthy"}, waits: "in sync with leader",
		},
		"one that is dead is not, so that the machine can go on": {
			function: "etcd.Promote", run: func(t *testing.T) *run { return up(t, 0).with(func(e *run) { e.joins("c-1", true) }) },
			members: []string{"c-0 alive healthy", "c-1 learner"},
		},
		"the youngest that does not lead is removed, and then its Pod": {
			function: "etcd.Remove", run: func(t *testing.T) *run {
				return up(t, 9, 10, 11).with(func(e *run) { e.size, e.etcd.leader = 2, 111 })
			},
			members: []string{"c-9 alive healthy", "c-11 alive healthy"}, did: []string{"remove c-10", "delete c-10"},
		},
		"a learner is removed before others": {
			function: "etcd.Remove", run: func(t *testing.T) *run {
				return up(t, 0, 2).with(func(e *run) { e.joins("c-1", true); e.pod("c-1", "Running") })
			},
			members: []string{"c-0 alive healthy", "c-2 alive healthy"}, did: []string{"remove c-1", "delete c-1"},
		},
		"one that was removed before a crash is not removed twice, and its Pod goes": {
			function: "etcd.Remove", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) { e.pod("c-3", "Running"); e.pod("c-4", "Running") })
			},
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2 alive healthy"}, did: []string{"delete c-3", "delete c-4"},
		},
		"none is removed while one is not healthy": {
			function: "etcd.Remove", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2, 3, 4).with(func(e *run) { e.size = 3; e.etcd.members["c-1"].down = true })
			},
			members: []string{"c-0 alive healthy", "c-1 alive", "c-2 alive healthy", "c-3 alive healthy", "c-4 alive healthy"},
		},
		"one whose Pod is gone is removed, one at a time": {
			function: "etcd.Replace", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2, 3, 4).with(func(e *run) {
					for _, name := range []string{"c-1", "c-2"} {
						e.etcd.members[name].down = true
						e.pod(name, "Failed")
					}
				})
			},
			members: []string{"c-0 alive healthy", "c-2", "c-3 alive healthy", "c-4 alive healthy"}, did: []string{"remove c-1", "delete c-1"},
		},
		"one that works is not replaced": {
			function: "etcd.Replace", run: func(t *testing.T) *run { return up(t, 0, 1, 2) },
			members: []string{"c-0 alive healthy", "c-1 alive healthy", "c-2 alive healthy"},
		},
		"without a quorum none is removed": {
			function: "etcd.Replace", run: func(t *testing.T) *run {
				return up(t, 0, 1, 2).with(func(e *run) {
					for _, name := range []string{"c-1", "c-2"} {
						e.etcd.members[name].down = true
						delete(e.pods.pods, name)
					}
				})
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := test.run(t)
			members, status, err := e.run(t, test.function)
			if diff := cmp.Diff(test.members, members); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
			did := append(e.etcd.changes, slices.Sorted(slices.Values(e.pods.did))...)
			if diff := cmp.Diff(test.did, did, cmp.Transformer("some", func(l []string) []string { return append([]string{}, l...) })); diff != "" {
				t.Errorf("what was done (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.next, status["next"]); diff != "" {
				t.Errorf("the next number (-want +got):\n%s", diff)
			}
			_, waits := dsl.IsWaiting(err)
			if wants := test.waits + test.fails; (err != nil) != (wants != "") || waits != (test.waits != "") || err != nil && !strings.Contains(err.Error(), wants) {
				t.Errorf("error is %v, want %q", err, wants)
			}
		})
	}
}

// TestEtcdIsLookedAtAgain holds that it is soon while something is on its way.
func TestEtcdIsLookedAtAgain(t *testing.T) {
	tests := map[string]struct {
		run  *run
		want time.Duration
	}{
		"all is well":             {up(t, 0, 1, 2), later},
		"there is a learner":      {up(t, 0).with(func(e *run) { e.joins("c-1", false); e.pod("c-1", "Running") }), soon},
		"one does not answer":     {up(t, 0, 1, 2).with(func(e *run) { e.etcd.members["c-1"].down = true }), soon},
		"one does not answer yet": {up(t, 0).with(func(e *run) { e.pod("c-1", "Pending") }), soon},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := test.run.run(t, "etcd.Look"); err != nil {
				t.Fatal(err)
			}
			if again := test.run.again; again == nil || *again != test.want {
				t.Errorf("it is looked at again after %v, want %s", again, test.want)
			}
		})
	}
}

// TestEtcdMembersAreKnownByTheirURLs holds that each form of a peer URL leads back to the member.
func TestEtcdMembersAreKnownByTheirURLs(t *testing.T) {
	for _, form := range []string{defaultPeerURL, "https://{member}.example.com:2380", "http://192.0.2.{number}:2380", "http://{cluster}-{number}.{namespace}:1"} {
		s := &session{params: parameters{PeerURL: form}}
		s.Name, s.Namespace = "c", "ns"
		for _, name := range []string{"c-0", "c-17"} {
			got, err := s.nameOf(etcd.Member{PeerURLs: []string{s.peerURL(name)}})
			if err != nil || got != name {
				t.Errorf("%s is of %q, %v", s.peerURL(name), got, err)
			}
		}
		for _, url := range []string{"", s.peerURL("c-x"), s.peerURL("c-1") + "0", "http://foreign:2380"} {
			if got, err := s.nameOf(etcd.Member{PeerURLs: []string{url}, Name: "stranger"}); err == nil || !strings.Contains(err.Error(), "stranger") {
				t.Errorf("%s is of %q, %v", url, got, err)
			}
		}
	}
}

// TestEtcdPodsHaveTheFlagsOfTheCluster holds what the flags of a Pod have.
func TestEtcdPodsHaveTheFlagsOfTheCluster(t *testing.T) {
	first, second := up(t, 0), up(t, 0)
	first.pods.pods, first.next = map[string]map[string]any{}, 0
	second.size = 3
	tests := map[string]struct {
		run                 *run
		function, pod, want string
	}{
		"the first":       {first, "etcd.Create", "c-0", "[new c-0=http://c-0.peer http://c-0.peer]"},
		"one that joined": {second, "etcd.Add", "c-1", "[existing c-0=http://c-0.peer,c-1=http://c-1.peer http://c-1.peer]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := test.run.run(t, test.function); err != nil {
				t.Fatal(err)
			}
			containers, _, _ := unstructured.NestedSlice(test.run.pods.pods[test.pod], "spec", "containers")
			if got := fmt.Sprint(containers[0].(map[string]any)["args"]); got != test.want {
				t.Errorf("its arguments are %s, want %s", got, test.want)
			}
		})
	}
}
