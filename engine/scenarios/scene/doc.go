// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package scene has what the tests of the engine's promises share: the stage on which a [Scenario] plays, handlers, objects and
// checks. The tests lie in the folders beside it, one for each topic.
//
//	func TestAChangeIsHandledOnce(t *testing.T) {
//		scene.PlayAll(t, map[string]scene.Scenario{
//			"a change of the spec": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
//				s.Begin()
//				s.Resize(2)
//				s.Called("sync update")
//			}},
//		})
//	}
package scene
