// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestALetIsThatOfTheObjectThatAHandlerSees holds that a let has another value for a handler that comes after one that changed what it
// reads, in the same reconcile, and that a change of what only a let reads runs the handler.
func TestALetIsThatOfTheObjectThatAHandlerSees(t *testing.T) {
	const text = `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{
		resource: foos.v1.example.com,
		let: {size: self.spec.size, seen: "self.?status.?size.orValue(0)", done: seen == size},
		handlers: [
			{id: early, when: "!done", set: {annotations: {early: "${string(seen)} of ${string(size)}"}}},
			{id: status, set: {status: {size: "${size}"}}},
			{id: late, when: done, set: {annotations: {late: "${string(seen)} of ${string(size)}"}}}]}]}`
	scene.PlayConfiguration(t, text, func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		s.Resize(5)
		s.Settle()
		s.WantField("metadata.annotations.late", "5 of 5")
		s.Resize(7)
		s.Settle()
		s.WantField("metadata.annotations.late", "7 of 7")
		s.WantField("metadata.annotations.early", "5 of 7")
	})
}
