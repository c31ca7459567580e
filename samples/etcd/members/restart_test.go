// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEtcdMembersRestartOneByOne holds which member gets the new image, b, and when.
func TestEtcdMembersRestartOneByOne(t *testing.T) {
	tests := map[string]struct {
		change func(*run)
		did    []string
	}{
		"the first that does not lead is restarted":         {func(*run) {}, []string{"c-1 gets b, after 1 a"}},
		"the leader comes last":                             {func(e *run) { e.runs("b", "2", "1 a", "c-1", "c-2") }, []string{"c-0 gets b, after 1 a"}},
		"none is where all have the image":                  {func(e *run) { e.runs("b", "2", "1 a", "c-0", "c-1", "c-2") }, nil},
		"the next one waits while one has yet to restart":   {func(e *run) { e.runs("b", "1", "1 a", "c-1") }, nil},
		"it waits while one has no container":               {func(e *run) { e.runs("b", "", "1 a", "c-1") }, nil},
		"it waits while one that has restarted is away":     {func(e *run) { e.runs("b", "2", "1 a", "c-1"); e.etcd.members["c-1"].down = true }, nil},
		"it waits for a learner":                            {func(e *run) { e.joins("c-3", true); e.runs("b", "2", "", "c-3") }, nil},
		"the next one follows":                              {func(e *run) { e.runs("b", "2", "1 a", "c-1") }, []string{"c-2 gets b, after 1 a"}},
		"the one that is away is first":                     {func(e *run) { e.etcd.members["c-2"].down = true }, []string{"c-2 gets b, after 1 a"}},
		"of two that are away none is restarted":            {func(e *run) { e.etcd.members["c-1"].down, e.etcd.members["c-2"].down = true, true }, nil},
		"one that has yet to restart may change again":      {func(e *run) { e.runs("x", "1", "1 a", "c-1") }, []string{"c-1 gets b, after 1 a"}},
		"one that has restarted may change again":           {func(e *run) { e.runs("x", "2", "1 a", "c-1") }, []string{"c-1 gets b, after 2 x"}},
		"one that was taken back in time needs no restart":  {func(e *run) { e.runs("b", "1", "1 b", "c-1") }, []string{"c-2 gets b, after 1 a"}},
		"one whose Pod is being deleted is not restarted":   {func(e *run) { e.pod("c-1", "Failed"); e.etcd.members["c-1"].down = true }, nil},
		"a kubelet that has not seen the change is awaited": {func(e *run) { e.runs("b", "2", "1 a", "c-1"); e.unseen("c-1") }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := up(t, 0, 1, 2)
			e.image = "b"
			e.runs("a", "1", "", "c-0", "c-1", "c-2")
			test.change(e)
			if _, _, err := e.run(t, "etcd.Restart"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.did, e.pods.did); diff != "" {
				t.Errorf("what was done (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEtcdOnlyMemberRestarts holds that a cluster of one gets its image, also where the first one cannot run.
func TestEtcdOnlyMemberRestarts(t *testing.T) {
	for _, down := range []bool{false, true} {
		e := up(t, 0)
		e.image, e.known = "b", []any{map[string]any{"name": "c-0"}}
		e.etcd.members["c-0"].down = down
		e.runs("a", "", "", "c-0")
		members, _, err := e.run(t, "etcd.Restart")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"c-0 alive healthy restarting"}
		if down {
			want = []string{"c-0 alive restarting"}
		}
		if diff := cmp.Diff(want, members); diff != "" {
			t.Errorf("with a member that is down: %t: members (-want +got):\n%s", down, diff)
		}
		if diff := cmp.Diff([]string{"c-0 gets b, after  a"}, e.pods.did); diff != "" {
			t.Errorf("what was done (-want +got):\n%s", diff)
		}
	}
}
