// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestAResourceOfTheKindStatus holds that a resource whose kind is called as the API machinery's Status is handled.
func TestAResourceOfTheKindStatus(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: "statuses.v1.example.com", Kind: "Status"})
		s := newStage(t, c)
		s.Operator.Resource("statuses.v1.example.com", func(r *dsl.Resource) { r.OnReconcile("one", s.Note("one")) })
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Status, metadata: {name: web}}`)
		s.Called("one create")
	})
}
