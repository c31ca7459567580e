// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// parted has each owner make a ConfigMap, with a policy.
const parted = `{resource: foos.v1.example.com, handlers: [{id: keep, apply: {part: {%stemplate: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {size: "${string(self.?spec.?size.orValue(1))}"}}}}}]}`

// playOwners launches the operator with 100 owners of a ConfigMap each.
func playOwners(t *testing.T, policy string, play func(*scene.Stage)) {
	t.Helper()
	scene.PlayYAML(t, fmt.Sprintf(parted, policy), func(s *scene.Stage) {
		launch(s, 100)
		want(s, 100, "at first")
		play(s)
		release(s, limits.Release{Until: time.Now().Add(time.Hour)})
		s.Advance(15 * time.Minute)
		if got := checkOf(s); got != "" {
			s.T.Errorf("after the release the check says %q", got)
		}
	})
}

// TestChildrenThatTheOperatorDeletesAreLimited holds that the limits count children which the operator deletes before
// their owners go, whatever the policy is, and that all of them go in the end.
func TestChildrenThatTheOperatorDeletesAreLimited(t *testing.T) {
	for name, policy := range map[string]string{
		"labelled children":                       "ownership: labelled, ",
		"owned children that go in reverse order": "deleteOrder: reverse, ",
	} {
		t.Run(name, func(t *testing.T) {
			playOwners(t, policy, func(s *scene.Stage) {
				removeAll(s, 100)
				s.Advance(time.Hour)
				if left := count(s); left < 70 || left == 100 {
					s.T.Errorf("%d of 100 ConfigMaps are left", left)
				}
			})
		})
	}
}

// TestARecreationOfAllChildrenIsHeld holds that a changed template deletes few children that have to be made again.
func TestARecreationOfAllChildrenIsHeld(t *testing.T) {
	playOwners(t, "update: recreate, ", func(s *scene.Stage) {
		before := s.ConfigMapUIDs()
		for i := range 100 {
			s.Update(scene.Foos, "default", fmt.Sprint("foo-", i), scene.SetField(int64(2), "spec", "size"))
		}
		s.Advance(time.Hour)
		same := 0
		for name, uid := range s.ConfigMapUIDs() {
			if before[name] == uid {
				same++
			}
		}
		if same < 70 || same == 100 {
			s.T.Errorf("%d of 100 ConfigMaps are the ones from before", same)
		}
	})
}

// TestACRDThatIsDeletedRunsFewDeleteHandlers holds that the end of a CRD, and so of all its objects, waits for a person.
func TestACRDThatIsDeletedRunsFewDeleteHandlers(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: leaves, Play: func(s *scene.Stage) {
		launch(s, 100)
		s.Delete(scene.CRDs, "", "foos.example.com")
		s.Advance(time.Hour)
		if n := began(s); n == 0 || n > 30 {
			s.T.Errorf("%d of 100 delete handlers began", n)
		}
		release(s, limits.Release{Until: time.Now().Add(time.Hour)})
		s.Advance(5 * time.Minute)
		if n := began(s); n < 70 {
			s.T.Errorf("%d delete handlers began after the release", n)
		}
		if o := s.Get(scene.CRDs, "", "foos.example.com"); o != nil {
			s.T.Error("the CRD is there still")
		}
	}})
}

// TestAnIdleHoldWritesNothing holds that what waits costs no write for hours.
func TestAnIdleHoldWritesNothing(t *testing.T) {
	scene.PlayWithConditions(t, func(foo *dsl.Resource) { foo.OnDelete("left", scene.Succeeds) }, func(s *scene.Stage) {
		for i := range 100 {
			s.Create(scene.FooIn("default", fmt.Sprint("foo-", i), nil))
		}
		s.Advance(2 * time.Minute)
		removeAll(s, 100)
		s.Advance(time.Hour)
		s.Forget()
		s.Advance(24 * time.Hour)
		s.Wrote()
	})
}
