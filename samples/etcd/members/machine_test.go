// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
)

// machine is the machine of the sample.
func machine(t *testing.T) *dsl.Machine {
	t.Helper()
	op, err := config.Load([]string{"../operator.yaml"}, registry())
	if err != nil {
		t.Fatal(err)
	}
	return op.Resources()[0].Machines()[0].Machine
}

// learners are the letters of learners.
const learners = "lLyP"

// object is an EtcdCluster with members, each a letter: v has a vote, l is a learner, both healthy; V and L are not, and
// of x and y, with a vote and without, the data is gone. Those that have another image than the wanted one are o and O, with
// a vote, healthy and not, and P, a learner that is not. Those that have yet to restart with the image that they have are r, and
// s, which has another one than the wanted one again; both still answer.
func object(size int64, letters string) *dsl.Subject {
	members := []any{}
	for _, letter := range letters {
		members = append(members, map[string]any{
			"name": string(letter), "learner": strings.ContainsRune(learners, letter), "healthy": strings.ContainsRune("vlors", letter),
			"alive": !strings.ContainsRune("xy", letter), "outdated": strings.ContainsRune("oOPs", letter), "restarting": strings.ContainsRune("rs", letter),
		})
	}
	return &dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"size": size}, "status": map[string]any{"members": members},
	}}}
}

// goes returns the state that an object goes to, the same one where it stays.
func goes(t *testing.T, m *dsl.Machine, from string, about *dsl.Subject) string {
	t.Helper()
	state, _ := m.State(from)
	if state == nil {
		t.Fatalf("there is no state %s", from)
	}
	for _, way := range state.Transitions {
		if way.Manual {
			continue
		}
		if way.When == nil {
			return way.To
		}
		holds, err := way.When(about)
		if err != nil {
			t.Fatal(err)
		}
		if holds {
			return way.To
		}
	}
	return from
}

// TestEtcdMachineGoes holds where the states of the sample lead.
func TestEtcdMachineGoes(t *testing.T) {
	m := machine(t)
	tests := map[string]struct {
		from    string
		size    int64
		members string
		want    string
	}{
		"the first member is waited for":                        {"Creating", 3, "V", "Creating"},
		"it is healthy":                                         {"Creating", 3, "v", "Steady"},
		"the first one has died":                                {"Creating", 3, "x", "Lost"},
		"as many as there should be":                            {"Steady", 3, "vvv", "Steady"},
		"too few":                                               {"Steady", 3, "vv", "Adding"},
		"too many":                                              {"Steady", 3, "vvvv", "Removing"},
		"too few, but one is not healthy":                       {"Steady", 3, "vV", "Degraded"},
		"too many, but one is not healthy":                      {"Steady", 1, "vvV", "Degraded"},
		"one has died":                                          {"Steady", 3, "vvx", "Replacing"},
		"one has died, and another one is not healthy":          {"Steady", 3, "vVx", "Degraded"},
		"the only one has died":                                 {"Steady", 1, "x", "Lost"},
		"one of two has died":                                   {"Steady", 3, "vx", "Lost"},
		"two of three have died":                                {"Steady", 3, "vxx", "Lost"},
		"a learner is found":                                    {"Steady", 3, "vvl", "Promoting"},
		"it does not answer":                                    {"Degraded", 3, "vvV", "Degraded"},
		"it answers again":                                      {"Degraded", 3, "vvv", "Steady"},
		"it has died":                                           {"Degraded", 3, "vvx", "Replacing"},
		"without a quorum no member is replaced":                {"Degraded", 5, "vVVvx", "Degraded"},
		"a learner that is not healthy does not degrade":        {"Degraded", 3, "vvL", "Steady"},
		"a learner starts":                                      {"Adding", 3, "vL", "Adding"},
		"it works":                                              {"Adding", 3, "vl", "Promoting"},
		"it has died, and the cluster of one has not":           {"Adding", 3, "vy", "Replacing"},
		"none was added":                                        {"Adding", 3, "vV", "Steady"},
		"it is not wanted any more":                             {"Adding", 1, "vL", "Removing"},
		"another one has died meanwhile":                        {"Adding", 5, "vvxL", "Replacing"},
		"it catches up":                                         {"Promoting", 3, "vl", "Promoting"},
		"it has its vote":                                       {"Promoting", 3, "vv", "Steady"},
		"it has died before":                                    {"Promoting", 3, "vy", "Replacing"},
		"it is not wanted any more, either":                     {"Promoting", 1, "vl", "Removing"},
		"the others are healthy":                                {"Removing", 3, "vvv", "Steady"},
		"the others elect a leader":                             {"Removing", 3, "VVV", "Removing"},
		"the dead one was removed, and another one is added":    {"Replacing", 3, "vv", "Adding"},
		"the dead one was removed, and no more are wanted":      {"Replacing", 1, "v", "Degraded"},
		"there is another dead one":                             {"Replacing", 5, "vvvx", "Degraded"},
		"there is a learner yet":                                {"Replacing", 5, "vvvl", "Degraded"},
		"one has another image":                                 {"Steady", 3, "vov", "Restarting"},
		"a member is added first":                               {"Steady", 3, "oo", "Adding"},
		"a learner gets its vote first":                         {"Steady", 3, "ool", "Promoting"},
		"another image is wanted while one is away":             {"Steady", 3, "ooV", "Degraded"},
		"it restarts":                                           {"Restarting", 3, "orv", "Restarting"},
		"it is away":                                            {"Restarting", 3, "oVv", "Restarting"},
		"it is back":                                            {"Restarting", 3, "ovv", "Steady"},
		"it is away, and has another image again":               {"Restarting", 3, "oOv", "Restarting"},
		"another one has died while one restarts":               {"Restarting", 3, "orx", "Restarting"},
		"it has died while it restarts":                         {"Restarting", 3, "ovx", "Replacing"},
		"the one that is away has another image":                {"Degraded", 3, "vvO", "Restarting"},
		"one that restarts is away, too":                        {"Degraded", 3, "vrO", "Degraded"},
		"the first member cannot start with its image":          {"Creating", 3, "O", "Restarting"},
		"a learner cannot start with its image":                 {"Adding", 3, "vvP", "Restarting"},
		"nor can one that was healthy before":                   {"Promoting", 3, "vvP", "Restarting"},
		"none is added while one restarts":                      {"Replacing", 3, "vr", "Degraded"},
		"a lost cluster stays so":                               {"Lost", 3, "vxx", "Lost"},
		"a lost cluster stays so even where it is back somehow": {"Lost", 3, "vvv", "Lost"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := goes(t, m, test.from, object(test.size, test.members)); got != test.want {
				t.Errorf("from %s, size %d, with %s it goes to %s, want %s", test.from, test.size, test.members, got, test.want)
			}
		})
	}
}

// TestEtcdMachineComesToRest holds that no members have an object go round: states whose actions change nothing lead to one in
// which it stays.
func TestEtcdMachineComesToRest(t *testing.T) {
	m := machine(t)
	all := []string{""}
	for range 3 {
		for _, some := range slices.Clone(all) {
			for _, letter := range "vVxlLyoOPrs" {
				if !strings.ContainsAny(some, learners) || !strings.ContainsRune(learners, letter) {
					all = append(all, some+string(letter))
				}
			}
		}
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	for _, some := range slices.Clone(all) {
		if len(some) == 3 && strings.HasPrefix(some, "vv") {
			all = append(all, some+"v", some+"O") // a member too many
		}
	}
	// What these states do changes the members, where etcd lets them.
	does := map[string]func(size int, members string) bool{
		"Adding": func(size int, members string) bool {
			return len(members) < size && !strings.ContainsAny(members, "VxlLyOP")
		},
		"Removing": func(size int, members string) bool {
			return len(members) > size && !strings.ContainsAny(members, "VxO")
		},
		"Replacing": func(_ int, members string) bool { return strings.ContainsAny(members, "xy") },
		"Restarting": func(_ int, members string) bool {
			away := strings.NewReplacer("v", "", "l", "", "o", "").Replace(members)
			return away == "" && strings.Contains(members, "o") || len(away) == 1 && strings.ContainsAny(away, "OPs")
		},
		"Promoting": func(_ int, members string) bool { return strings.Contains(members, "l") },
	}
	for s := range m.All() {
		for _, size := range []int64{1, 3, 5} {
			for _, members := range all {
				if members == "" {
					continue
				}
				at, way := s.Name, []string{s.Name}
				for range 6 {
					if acts := does[at]; acts != nil && acts(int(size), members) {
						break
					}
					next := goes(t, m, at, object(size, members))
					if next == at {
						break
					}
					at = next
					way = append(way, at)
				}
				if len(way) > 6 {
					t.Errorf("size %d, members %s: %s", size, members, strings.Join(way, " → "))
				}
			}
		}
	}
	if diff := cmp.Diff([]string{"Lost"}, terminal(m)); diff != "" {
		t.Errorf("terminal states (-want +got):\n%s", diff)
	}
}

func terminal(m *dsl.Machine) (out []string) {
	for s := range m.All() {
		if s.Terminal {
			out = append(out, s.Name)
		}
	}
	return out
}
