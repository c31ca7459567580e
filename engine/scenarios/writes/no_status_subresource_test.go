// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestOwnWritesWithoutAStatusSubresource holds that an own write which makes another generation runs no handler again, neither in this process
// nor in the next one, and hides no change.
func TestOwnWritesWithoutAStatusSubresource(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", NoStatus: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.OnReconcile("sized", sized(&s.Journal))
			foo.On(scene.CreateAndUpdate(), "edge", s.Note("edge"), dsl.Field("spec"))
		})
		s.Begin()
		s.Advance(time.Minute)
		s.Forget()
		for i := range int64(3) {
			s.Resize(i + 2)
			s.Advance(time.Minute)
			s.Called("sized update", "edge update")
			wantStatusSize(s, i+2)
			s.Wrote("patch foos default/web")
		}
		s.Process.Restart()
		s.Advance(time.Minute)
		s.Called("sized resume")
		s.Wrote()
	})
}
