// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestConditionsWithoutAStatusSubresourceAreNotRestated holds that conditions are not restated where each write of the
// status is another generation.
func TestConditionsWithoutAStatusSubresourceAreNotRestated(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", NoStatus: true})
		s := scene.NewStage(t, c)
		op, err := scene.ParseYAML(`{resource: foos.v1.example.com, handlers: [{id: a, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		s.Operator = op
		var n atomic.Int64
		c.Refuse(scene.Foos, func(*unstructured.Unstructured) error {
			if n.Add(1) > 500 {
				return errors.New("enough")
			}
			return nil
		})
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		if n.Load() > 10 {
			t.Errorf("%d writes without a change", n.Load())
		}
	})
}

// TestAConditionThatIsSetNowIsNotRestated holds that a condition which one handler sets is not overwritten by what another one
// that rests has said before.
func TestAConditionThatIsSetNowIsNotRestated(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [
		{id: a, set: {conditions: [{type: Ready, status: "${self.spec.size > 0}"}]}},
		{id: b, when: self.spec.color == 'blue', set: {conditions: [{type: Ready, status: false, reason: Blue}]}}]}`, func(s *scene.Stage) {
		s.Begin()
		s.Set("blue", "spec", "color")
		s.Advance(time.Minute)
		if got := s.ConditionStatus("Ready"); got != "False@2" {
			t.Errorf("b has set it to False in generation 2, and it is %s", got)
		}
	})
}

// TestTheConditionOfAFailedHandlerIsNotRestated holds that what a handler has said is not said of a generation that it
// failed with.
func TestTheConditionOfAFailedHandlerIsNotRestated(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: a, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}", reason: "${self.spec.why}"}]}}]}`, func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, why: Good}}`)
		s.Settle()
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"size": int64(0), "why": "not good"}
		})
		s.Advance(time.Minute)
		s.Set("x", "metadata", "labels", "any")
		s.Advance(time.Minute)
		if got := s.ConditionStatus("Sized"); got != "True@1" && got != "False@2" {
			t.Errorf("size is 0 in generation 2 and the handler has failed; the condition says %s", got)
		}
		s.Set("y", "spec", "other")
		s.Advance(time.Minute)
		if got := s.ConditionStatus("Sized"); got == "True@3" {
			t.Errorf("size is 0 in generation 3 and the handler has failed; the condition says %s", got)
		}
	})
}
