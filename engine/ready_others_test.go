// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// theirReady is what another controller says.
func theirReady(o *unstructured.Unstructured) {
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": "Theirs", "message": "", "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": o.GetGeneration(),
	}}}
}

// TestReadyThatAnotherOneTakesOver holds that the engine leaves the condition to another controller as long as there is one, that the
// log says so once, and that the engine says it again later.
func TestReadyThatAnotherOneTakesOver(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
		foo.Ready = new(true)
		foo.OnReconcile("seen", succeeds)
	}, func(s *stage) {
		s.Update(crdsOf, "", "foos.example.com", addConditions)
		log := overheard(s, "condition Ready")
		s.Create(web)
		s.ready("at first", `1 True AllReady ""`)
		log()
		s.Update(foos, "default", "web", theirReady)
		s.Advance(time.Minute)
		s.ready("when another one has set it", `1 Unknown Theirs ""`)
		s.size(2)
		s.Advance(time.Hour)
		s.ready("of another generation", `1 Unknown Theirs ""`)
		s.says(log, `"msg"="the condition Ready is left to the field manager that has set it" .*"manager"="[^"]+" "object"="default/web"`)
		s.Process.Restart()
		s.Advance(time.Hour)
		s.ready("after a restart", `1 Unknown Theirs ""`)
		log()
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { delete(o.Object, "status") })
		s.Advance(time.Minute)
		s.ready("when nobody says it", `2 True AllReady ""`)
		s.says(log)
		s.Forget()
		s.Advance(time.Hour)
		s.Wrote()
	}})
}

// TestReadyIsStillDuringADeletion holds that an object that is being deleted costs no write for the condition.
func TestReadyIsStillDuringADeletion(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
		foo.Ready = new(true)
		foo.OnReconcile("seen", succeeds)
		foo.OnDelete("farewell", fails(dsl.Waiting("the bank", 10*time.Second)))
	}, func(s *stage) {
		s.Update(crdsOf, "", "foos.example.com", addConditions)
		s.begin()
		s.ready("at first", `1 True AllReady ""`)
		s.Forget()
		s.remove()
		s.Advance(10 * time.Minute)
		s.ready("while it waits for its end", `1 True AllReady ""`)
		s.Wrote()
	}})
}

// TestAnUpgradeThatBringsReadySaysSoOnce holds the log line about the writes that it costs, however many objects there are, and that
// none is written of an object that is new.
func TestAnUpgradeThatBringsReadySaysSoOnce(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
		foo.Ready = new(false)
		foo.OnReconcile("seen", func(_ ctx, r *dsl.Request) error {
			r.Patch.SetCondition("Seen", "True", "Seen", "It was seen.")
			return nil
		})
	}, func(s *stage) {
		const words = `"msg"="objects get the condition Ready: a write for each"`
		s.Update(crdsOf, "", "foos.example.com", addConditions)
		s.begin()
		s.Create(strings.Replace(web, "name: web", "name: other", 1))
		s.ready("before", "nothing")
		if err := s.Process.Stop(); err != nil {
			s.t.Error(err)
		}
		s.Operator.Resources()[0].Ready = new(true)
		log := overheard(s, "get the condition Ready")
		s.ready("after the upgrade", `1 True AllReady ""`)
		s.says(log, words)
		s.Create(strings.Replace(web, "name: web", "name: third", 1))
		s.Process.Restart()
		s.Advance(time.Hour)
		s.says(log)
	}})
}
