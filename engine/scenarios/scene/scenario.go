// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// Scenario is an operator for Foos and what happens to it.
type Scenario struct {
	// Operator declares the handlers of the resource foos.
	Operator func(foo *dsl.Resource, j *kit.Journal)
	Play     func(s *Stage)
}

// PlayAll plays each scenario on a stage of its own. The names are sentences that say what is promised.
func PlayAll(t *testing.T, all map[string]Scenario) {
	t.Helper()
	for name, one := range all {
		t.Run(name, func(t *testing.T) { Play(t, one) })
	}
}

// Play plays a scenario.
func Play(t *testing.T, one Scenario) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: Foos, Kind: "Foo"})
		s := NewStage(t, c)
		s.Operator.Resource(Foos, func(foo *dsl.Resource) { one.Operator(foo, &s.Journal) })
		one.Play(s)
	})
}

// PlayWithConditions plays with Foos that have status.conditions. The stage is prepared before the operator starts, and web is
// created after it.
func PlayWithConditions(t *testing.T, operator func(*dsl.Resource), play func(*Stage), prepare ...func(*Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: Foos, Kind: "Foo"})
		c.Update(CRDs, "", "foos.example.com", AddConditions)
		s := NewStage(t, c)
		s.Operator.Resource(Foos, operator)
		for _, change := range prepare {
			change(s)
		}
		s.Launch()
		s.Create(Web)
		play(s)
	})
}

// RandomLives is how many random lives a test tries.
const RandomLives = 21
