// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAResourceOfTheKindStatusIsHandled holds that a resource whose kind is called as the API machinery's Status is handled.
func TestAResourceOfTheKindStatusIsHandled(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: "statuses.v1.example.com", Kind: "Status"})
		s := scene.NewStage(t, c)
		s.Operator.Resource("statuses.v1.example.com", func(r *dsl.Resource) { r.OnReconcile("one", s.Note("one")) })
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Status, metadata: {name: web}}`)
		s.Called("one create")
	})
}
