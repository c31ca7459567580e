// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestKopfsAlarm holds two uses of kopf's filters on a real API server: an alarm at each change for the worse, also after a restart,
// and a handler of create with a child that somebody deletes.
func TestKopfsAlarm(t *testing.T) {
	t.Parallel()
	op, err := config.Parse("alarm.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: alarm}, resources: [
  {resource: kopfexamples.v1.kopf.dev, handlers: [
    {id: alarm, causes: [update], field: spec.field, when: "self.spec.field == 'broken'", log: {message: "alarm, from ${old.spec.field}"}},
    {id: welcome, causes: [create], steps: [
      {apply: {pod: {apiVersion: v1, kind: Pod, metadata: {name: card}, spec: {containers: [{name: main, image: busybox}]}}}},
      {log: {message: welcome}}]}]}]}`), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	s := playKopf(t, op)
	s.example(t)
	s.Await(t, `"msg"="welcome"`)
	s.pods.Delete(t, "card")
	s.pods.AwaitGone(t, "card")
	become := func(field string) { s.kex.Patch(t, kopfExample, `{"spec":{"field":"`+field+`"}}`) }
	awaitUnmet := func(says string, want bool) {
		t.Helper()
		s.kex.Await(t, kopfExample, says, func(o *unstructured.Unstructured) bool {
			return strings.Contains(o.GetAnnotations()["alarm.handwerk.dev/state"], `"unmet"`) == want
		})
	}
	mend := func() {
		t.Helper()
		awaitUnmet("the end of the alarm's handler in its book", false)
		become("up")
		awaitUnmet("what the handler did not run for in its book", true)
	}
	become("broken")
	s.Await(t, `"msg"="alarm, from value"`)
	mend()
	s.Stop(t)
	s.begin(t)
	become("broken")
	s.Await(t, `"msg"="alarm, from up"`)
	mend()
	s.Stop(t)
	become("broken")
	s.begin(t)
	s.Await(t, `"msg"="alarm, from up"`)
	s.runs(t, "alarm", "success", 1)
	if lines := s.With(`"msg"="welcome"`); len(lines) > 0 {
		t.Errorf("it says %v", lines)
	}
	s.pods.AwaitGone(t, "card")
}
