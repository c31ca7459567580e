// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"fmt"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// marked is web as an earlier version of the operator may have left it: with status.observedGeneration, which a field manager has
// written, and perhaps with a state annotation.
type marked struct {
	generation, observed int64
	manager, state       string
}

func (m marked) load(s *scene.Stage) {
	s.T.Helper()
	const text = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: default, uid: u1, generation: %d, labels: {tier: gold},
		annotations: {op.handwerk.dev/state: %q},
		managedFields: [{manager: %s, operation: Update, apiVersion: example.com/v1, subresource: status, fieldsType: FieldsV1,
			fieldsV1: {"f:status": {"f:observedGeneration": {}}}}]},
		spec: {size: 1, color: red}, status: {observedGeneration: %d}}`
	s.Load(fmt.Sprintf(text, m.generation, m.state, m.manager, m.observed))
}

// TestAnObjectThatAnEarlierVersionHasMarkedIsTakenOverOnce holds law 2 for objects that an earlier version has marked as handled in
// status.observedGeneration: they are not created again, and a change since then is an update.
func TestAnObjectThatAnEarlierVersionHasMarkedIsTakenOverOnce(t *testing.T) {
	const own, state = "op/observed/u1", "patch foos default/web"
	// A text beside the number is void as soon as the number is greater than its generation.
	beside := func(seen string) string {
		return `{"handwerk":2,"uid":"u1","generation":1,"counted":true,"handlers":{"made":{"of":"essence","seen":"x"},"h":{"of":"essence","seen":"` + seen + `"}}}`
	}
	tests := map[string]struct {
		web    marked
		calls  []string
		writes []string
	}{
		"it was handled":                         {marked{1, 1, own, ""}, nil, []string{state}},
		"it has changed since":                   {marked{2, 1, own, ""}, []string{"h update"}, []string{state, state}},
		"a book beside the number says more":     {marked{1, 1, own, beside("?")}, []string{"h update"}, []string{state, state}},
		"a book beside the number is older":      {marked{2, 2, own, beside("?")}, nil, []string{state}},
		"the operator had another name":          {marked{1, 1, "old/observed/u1", ""}, nil, []string{state}},
		"the number is somebody else's":          {marked{1, 1, "other", ""}, []string{"made create", "h create"}, []string{state}},
		"a handler has set the number":           {marked{1, 1, "op", ""}, []string{"made create", "h create"}, []string{state}},
		"the number is that of another object":   {marked{1, 1, "op/observed/u2", ""}, []string{"made create", "h create"}, []string{state}},
		"the number is that of another operator": {marked{1, 1, "opera/observed/u1", ""}, []string{"made create", "h create"}, []string{state}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			playMarked(t, test.web, func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.On(scene.CreateAndUpdate(), "h", j.Note("h"))
			}, func(s *scene.Stage) {
				s.Called(test.calls...)
				s.Wrote(test.writes...)
				s.Process.Kill()
				s.Process.Restart()
				s.Called()
				s.Wrote()
				s.Process.Kill()
				s.Resize(2)
				s.Process.Restart()
				s.Called("h update")
			})
		})
	}
}

// playMarked plays with an operator that starts beside a marked object.
func playMarked(t *testing.T, web marked, operator func(foo *dsl.Resource, j *kit.Journal), play func(s *scene.Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		s := scene.NewStage(t, c)
		s.Operator.Was = []string{"old"}
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { operator(foo, &s.Journal) })
		web.load(s)
		s.Launch()
		play(s)
	})
}

// TestACrashDoesNotEndThatAMarkedObjectIsHandled holds the same where the process crashes after each of its writes, and where it
// sets status.observedGeneration itself.
func TestACrashDoesNotEndThatAMarkedObjectIsHandled(t *testing.T) {
	for after := 1; after <= 4; after++ {
		t.Run(fmt.Sprint("after write ", after), func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.OnCreate("made", s.Note("made"))
					foo.On(scene.CreateAndUpdate(), "h", s.Note("h", scene.ReportsSize), dsl.Needs("patch", "self/status"))
				})
				marked{2, 1, "op/observed/u1", ""}.load(s)
				s.Launch()
				s.Process.CrashAfter(after)
				s.Resize(2)
				s.Settle()
				s.Process.Kill()
				s.Process.Restart()
				s.Resize(3)
				s.Settle()
				for _, line := range s.Take() {
					if line != "h update" {
						t.Errorf("it is called for %s", line)
					}
				}
				s.WantStatus(map[string]any{"size": int64(3), "observedGeneration": s.Web().GetGeneration()})
			})
		})
	}
}

// TestAMarkedObjectThatComesBackIsNew holds law 7 for an object that has left the selector after it was taken over.
func TestAMarkedObjectThatComesBackIsNew(t *testing.T) {
	playMarked(t, marked{1, 1, "op/observed/u1", ""}, func(foo *dsl.Resource, j *kit.Journal) {
		foo.LabelSelector = "tier=gold"
		foo.OnCreate("made", j.Note("made"))
		foo.OnDelete("left", j.Note("left"))
	}, func(s *scene.Stage) {
		s.Called()
		s.LabelTier("lead")
		s.Called("left delete")
		s.Process.Restart()
		s.LabelTier("gold")
		s.Called("made create")
	})
}
