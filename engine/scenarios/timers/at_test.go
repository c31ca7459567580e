// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// expires is a handler that runs when web's spec.ttl has passed since its creation; without one, never.
func expires(more string) string {
	return `{id: expire, at: "self.spec.?ttl.optMap(t, timestamp(self.metadata.creationTimestamp) + duration(t))"` + more + `, log: {message: over}}`
}

// storing is the write of the time for which the handler ran.
const storing = "patch foos default/web"

// playAt plays with handlers of Foos, once web is there with a time of ten minutes.
func playAt(t *testing.T, handlers string, play func(s *scene.Stage)) {
	t.Helper()
	scene.PlayYAML(t, `{resource: `+scene.Foos+`, handlers: [`+handlers+`]}`, func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {ttl: 10m}}`)
		play(s)
	})
}

// lives sets how long web lives; nothing stands for ever.
func lives(s *scene.Stage, ttl string) {
	s.T.Helper()
	if ttl == "" {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "ttl") })
		return
	}
	s.Set(ttl, "spec", "ttl")
}

// away lets time pass while no process runs.
func away(s *scene.Stage, d time.Duration, meanwhile ...func()) {
	s.T.Helper()
	scene.Stop(s)
	for _, do := range meanwhile {
		do()
	}
	s.Advance(d)
	s.Launch()
}

func TestAHandlerRunsOnceAtTheTimeOfItsObject(t *testing.T) {
	tests := map[string]func(s *scene.Stage){
		"not before, then once, and its time is stored with one write": func(s *scene.Stage) {
			s.Advance(10*time.Minute - time.Second)
			s.Called()
			s.Wrote()
			s.Advance(time.Second)
			s.Called("expire timer")
			s.Wrote(storing)
			s.Advance(24 * time.Hour)
			s.Called()
			s.Wrote()
		},
		"a change of something else neither moves it nor runs it again": func(s *scene.Stage) {
			s.Advance(5 * time.Minute)
			s.Resize(2)
			s.Advance(5 * time.Minute)
			s.Called("expire timer")
			s.Resize(3)
			s.Advance(time.Hour)
			s.Called()
		},
		"after a restart it does not run again, and nothing is written": func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.Forget()
			for range 2 {
				s.Process.Restart()
				s.Advance(time.Hour)
			}
			s.Called()
			s.Wrote()
		},
		"a restart before it changes nothing": func(s *scene.Stage) {
			s.Advance(5 * time.Minute)
			s.Process.Restart()
			s.Advance(5*time.Minute - time.Second)
			s.Called()
			s.Advance(time.Second)
			s.Called("expire timer")
		},
		"a time that comes while no process runs is not lost": func(s *scene.Stage) {
			away(s, time.Hour)
			s.Called("expire timer")
			s.Process.Restart()
			s.Called()
		},
		"a crash before the time is stored repeats the run": func(s *scene.Stage) {
			end := s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(scene.ErrAgain))
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
			s.Process.Kill()
			end()
			s.Launch()
			s.Called("expire timer")
		},
		"a crash after it does not": func(s *scene.Stage) {
			s.Process.CrashAfter(1)
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
			s.Process.Kill()
			s.Launch()
			s.Called()
		},
		"while storing it fails, that is tried again, and the handler does not run again": func(s *scene.Stage) {
			end := s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(scene.ErrAgain))
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
			end()
			s.Forget()
			s.Advance(10 * time.Minute)
			s.Called()
			s.WantStoredState("generation", "handlers", "handwerk", "uid")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { playAt(t, expires(""), play) })
	}
}

func TestATimeMovesWithItsObject(t *testing.T) {
	tests := map[string]func(s *scene.Stage){
		"to a later one": func(s *scene.Stage) {
			lives(s, "1h")
			s.Advance(time.Hour - time.Second)
			s.Called()
			s.Advance(time.Second)
			s.Called("expire timer")
		},
		"to an earlier one": func(s *scene.Stage) {
			lives(s, "5m")
			s.Advance(5 * time.Minute)
			s.Called("expire timer")
			s.Advance(time.Hour)
			s.Called()
		},
		"to one that has passed, which counts at once": func(s *scene.Stage) {
			s.Advance(5 * time.Minute)
			lives(s, "1m")
			s.Called("expire timer")
		},
		"to none, and back": func(s *scene.Stage) {
			lives(s, "")
			s.Advance(time.Hour)
			s.Called()
			lives(s, "10m")
			s.Called("expire timer")
		},
		"after it ran, a later time runs it again, and an earlier one does not": func(s *scene.Stage) {
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
			lives(s, "20m")
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
			lives(s, "5m")
			s.Advance(time.Minute)
			lives(s, "15m")
			s.Advance(time.Minute)
			s.Called()
			s.Process.Restart()
			s.Called()
		},
		"while no process runs": func(s *scene.Stage) {
			away(s, time.Hour, func() { lives(s, "2h") })
			s.Called()
			s.Advance(time.Hour)
			s.Called("expire timer")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { playAt(t, expires(""), play) })
	}
}

// TestATimeMayHaveAName holds that a let in at is looked into: it moves with the object, and what it may not read is refused.
func TestATimeMayHaveAName(t *testing.T) {
	playAt(t, `{id: expire, let: {ends: timestamp(self.metadata.creationTimestamp) + duration(self.spec.ttl)}, at: ends, log: {message: over}}`, func(s *scene.Stage) {
		lives(s, "1h")
		s.Advance(time.Hour - time.Second)
		s.Called()
		s.Advance(time.Second)
		s.Called("expire timer")
	})
	_, err := scene.ParseYAML(`{resource: ` + scene.Foos + `, handlers: [{id: expire, let: {soon: now + duration('1h')}, at: soon, log: {message: over}}]}`)
	if err == nil || !strings.Contains(err.Error(), "now is not there in at") {
		t.Errorf("now in a let: %v", err)
	}
}

func TestWhatKeepsAHandlerFromItsTimeDelaysIt(t *testing.T) {
	tests := map[string]struct {
		handlers string
		play     func(s *scene.Stage)
	}{
		"a when that is false": {expires(`, when: "self.spec.?size.orValue(0) > 1"`), func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.Called()
			s.Resize(2)
			s.Called("expire timer")
			s.Wrote(storing)
		}},
		"a label that is missing": {expires(`, labels: {tier: gold}`), func(s *scene.Stage) {
			s.Advance(time.Hour)
			s.Called()
			s.LabelTier("gold")
			s.Called("expire timer")
		}},
		"a pause": {expires(""), func(s *scene.Stage) {
			s.Set("moving", "metadata", "annotations", "op.handwerk.dev/paused")
			s.Advance(time.Hour)
			s.Called()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
			s.Called("expire timer")
		}},
		"a pause does not outlast its time": {expires(""), func(s *scene.Stage) {
			s.Set("moving", "metadata", "annotations", "op.handwerk.dev/paused")
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
		}},
		"a deletion is the end": {expires(""), func(s *scene.Stage) {
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/theirs"}) })
			s.Remove()
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
		}},
		"a run for another cause comes first": {expires(`, causes: [create, update, timer]`), func(s *scene.Stage) {
			s.Called("expire create")
			s.Advance(5 * time.Minute)
			lives(s, "1m")
			s.Called("expire update", "expire timer")
			s.Advance(time.Hour)
			s.Process.Restart()
			s.Called()
		}},
		"also one that writes nothing": {expires(`, causes: [reconcile, timer]`), func(s *scene.Stage) {
			s.Called("expire create")
			s.Advance(5 * time.Minute)
			lives(s, "1m")
			s.Called("expire update", "expire timer")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { playAt(t, tt.handlers, tt.play) })
	}
}

// TestATimeThatAHandlerOfTheSamePassSetsCounts holds that what an earlier and what a later handler makes of an object is seen.
func TestATimeThatAHandlerOfTheSamePassSetsCounts(t *testing.T) {
	const sets = `{id: sets, set: {status: {until: "${timestamp(self.metadata.creationTimestamp) + duration(self.spec.ttl)}"}}}`
	const at = `{id: expire, at: "self.?status.?until", log: {message: over}}`
	for name, handlers := range map[string]string{"an earlier one": sets + ", " + at, "a later one": at + ", " + sets} {
		t.Run(name, func(t *testing.T) {
			playAt(t, handlers, func(s *scene.Stage) {
				s.Called("sets create")
				s.Advance(10 * time.Minute)
				s.Called("expire timer")
				lives(s, "11m")
				s.Called("sets update")
				s.Advance(time.Minute)
				s.Called("expire timer")
			})
		})
	}
}
