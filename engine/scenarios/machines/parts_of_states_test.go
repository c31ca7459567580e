// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// playStates plays an operator of foos with a machine of these states, as YAML has them.
func playStates(t *testing.T, states string, play func(s *scene.Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		op, err := scene.ParseYAML(`{resource: foos.v1.example.com, machine: {states: [` + states + `]}}`)
		if err != nil {
			t.Fatal(err)
		}
		s.Operator = op
		launchWithConditions(s)
		s.Create(scene.Web)
		s.Settle()
		play(s)
	})
}

// TestAPartOfAStateSeesWhatEarlierPartsSet holds which of the things that are done in a state see what those before them
// have set.
func TestAPartOfAStateSeesWhatEarlierPartsSet(t *testing.T) {
	const sees = `"${has(self.status.first) ? 'seen' : 'not seen'}"`
	playStates(t, `
		{name: One, transitions: [{to: Two, when: has(self.status.first)}],
		 enter: [{set: {status: {first: "yes"}}}, {set: {status: {second: `+sees+`}}}], during: {set: {status: {during: `+sees+`}}}},
		{name: Two, terminal: true}`, func(s *scene.Stage) {
		s.WantState("Two")
		got := map[string]any{}
		for _, field := range []string{"first", "second", "during"} {
			got[field] = scene.ValueAt(s.Web(), "status."+field)
		}
		if diff := cmp.Diff(map[string]any{"first": "yes", "second": "not seen", "during": "seen"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestAChildOfAStateFollowsItsNameInDuringAlone holds what becomes of a child whose name is worked out from the object, when
// that comes to another one while the object is in a state.
func TestAChildOfAStateFollowsItsNameInDuringAlone(t *testing.T) {
	for name, test := range map[string]struct {
		action string
		want   []string
	}{
		"made in enter it stays as it was made": {"enter", []string{"web-1"}},
		"made in during it is recreated":        {"during", []string{"web-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			playStates(t, `{name: One, terminal: true, `+test.action+`: {apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: "web-${string(self.spec.size)}"}}}}}`, func(s *scene.Stage) {
				s.Resize(2)
				s.Settle()
				var got []string
				for _, o := range s.List(scene.ConfigMaps, "default") {
					got = append(got, o.GetName())
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("children (-want +got):\n%s", diff)
				}
			})
		})
	}
}
