// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// breaks is the action of a handler that fails while spec.size is 2, and changes nothing when it is run again.
const breaks = `set: {labels: {same: "${string(0 * (1 / (self.spec.size - 2)))}"}}`

// The handlers of these tests: app fails while spec.size is 2, and says reports what came of it.
const (
	app       = `{id: app, ` + breaks + `}`
	says      = `{id: says, set: {status: {app: "${handlers.app.state}"}}}`
	saysAll   = `{id: says, set: {status: {app: "${handlers.app.state}", why: "${handlers.app.message}", tries: "${handlers.app.attempts}", next: "${handlers.app.nextTry}"}}}`
	appStores = `{id: app, causes: [create, update], retries: 0, ` + breaks + `}`
)

// outcomes plays with handlers of Foos.
func outcomes(t *testing.T, handlers string, play func(s *scene.Stage)) {
	t.Helper()
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+handlers+`]}`, play)
}

// TestWhatCameOfAHandler holds the state, the message and the attempts that other handlers read, wherever these stand.
func TestWhatCameOfAHandler(t *testing.T) {
	const zero = "evaluating set.labels.same: division by zero"
	for name, test := range map[string]struct {
		handlers string
		size     int64
		want     string
	}{
		"one that has succeeded":                   {app, 1, "done 0 "},
		"one that fails":                           {app, 2, "failed 1 " + zero},
		"one that has failed for good":             {`{id: app, retries: 0, ` + breaks + `}`, 2, "failed 1 " + zero},
		"one that has failed for good, and stores": {appStores, 2, "failed 1 " + zero},
		"one whose error is ignored":               {`{id: app, errors: ignore, ` + breaks + `}`, 2, "done 0 "},
		"one whose when is false":                  {`{id: app, when: self.spec.size > 5, ` + breaks + `}`, 1, "filtered 0 "},
		"one whose label is not there":             {`{id: app, labels: {tier: gold}, ` + breaks + `}`, 1, "filtered 0 "},
		"one whose when comes to be false":         {`{id: app, when: self.spec.size < 2, ` + breaks + `}`, 2, "filtered 0 "},
		"one whose when cannot be worked out":      {`{id: app, when: self.spec.none > 5, ` + breaks + `}`, 1, "failed 0 evaluating when: self.spec.none is not set"},
		"one after another that fails":             {`{id: first, ` + breaks + `}, {id: app, after: [first], ` + breaks + `}`, 2, "waiting 0 waiting for handler first"},
		"one whose cause has not come":             {`{id: app, causes: [delete], call: test.Nothing}`, 1, "never 0 "},
		"one with steps":                           {`{id: app, steps: [{call: test.Nothing}, {` + breaks + `}]}`, 2, "failed 1 "},
		"one with forEach":                         {`{id: app, forEach: [1], ` + breaks + `}`, 2, "failed 1 "},
		"one of resume alone, of a new object":     {`{id: app, causes: [resume], call: test.Nothing}`, 1, "never 0 "},
	} {
		const reads = `{id: says, set: {status: {app: "${handlers.app.state + ' ' + string(handlers.app.attempts) + ' ' + handlers.app.message}"}}}`
		for _, order := range []string{test.handlers + ", " + reads, reads + ", " + test.handlers} {
			t.Run(name, func(t *testing.T) {
				outcomes(t, order, func(s *scene.Stage) {
					s.Begin()
					if test.size != 1 {
						s.Resize(test.size)
					}
					s.Settle()
					got := fmt.Sprint(scene.ValueAt(s.Web(), "status.app"))
					if got != test.want && (test.want != "failed 1 " || !strings.HasPrefix(got, test.want)) {
						t.Errorf("it says %q, want %q", got, test.want)
					}
				})
			})
		}
	}
}

// TestAReaderRunsWhenAnOutcomeChanges holds that a handler runs when what it reads of another one's outcome changes, in the same reconcile if
// it stands after that and in the next one otherwise, and for nothing else. A write goes out where a value is another one.
func TestAReaderRunsWhenAnOutcomeChanges(t *testing.T) {
	for name, test := range map[string]struct {
		handlers string
		// failed and mended are the calls when app fails, and when it does no more.
		failed, mended []string
	}{
		"after it":  {app + ", " + says, []string{"app update", "says update"}, []string{"app update", "says update"}},
		"before it": {says + ", " + app, []string{"app update", "says update"}, []string{"app update", "says update"}},
		"with two between": {
			`{id: two, set: {status: {two: "${handlers.one.state == 'filtered'}"}}}, {id: one, when: handlers.app.state == 'done', set: {status: {one: runs}}}, ` + app + ", " + says,
			[]string{"app update", "says update", "two update"}, []string{"app update", "says update", "one update", "two update"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcomes(t, test.handlers, func(s *scene.Stage) {
				s.Begin()
				s.WantStatus(map[string]any{"app": "done"})
				s.Resize(3)
				s.Called("app update")
				s.Wrote()
				s.Resize(2)
				s.WantStatus(map[string]any{"app": "failed"})
				s.Called(test.failed...)
				if n := len(s.Writes()); n == 0 || n > 2 {
					t.Errorf("%d writes of one failure", n)
				}
				s.Advance(2500 * time.Millisecond)
				s.Called("app update 2")
				s.Wrote()
				s.Resize(1)
				s.Called(test.mended...)
				s.WantStatus(map[string]any{"app": "done"})
				s.Forget()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			})
		})
	}
}

// TestEachFailureIsOneWriteAtMost holds that a handler which reports attempts and the next try makes one write for each of them.
func TestEachFailureIsOneWriteAtMost(t *testing.T) {
	for name, handlers := range map[string]string{"after it": app + ", " + saysAll, "before it": saysAll + ", " + app} {
		t.Run(name, func(t *testing.T) {
			outcomes(t, handlers, func(s *scene.Stage) {
				s.Begin()
				s.WantStatus(map[string]any{"app": "done", "why": "", "tries": int64(0), "next": nil})
				s.Resize(2)
				s.Advance(10 * time.Minute)
				tries := 0
				for _, call := range s.Take() {
					if strings.HasPrefix(call, "app ") {
						tries++
					}
				}
				if n := len(s.Writes()); tries < 5 || n > tries+1 { // one more for the condition HandlersFailing
					t.Errorf("%d writes of %d failures", n, tries)
				}
				s.WantStatus(map[string]any{"app": "failed", "tries": int64(tries)})
				next, err := time.Parse(time.RFC3339, fmt.Sprint(scene.ValueAt(s.Web(), "status.next")))
				if err != nil || next.Before(time.Now().Add(-time.Second)) {
					t.Errorf("the next try is at %v (%v), and it is %v", next, err, time.Now())
				}
				s.Resize(3)
				s.WantStatus(map[string]any{"app": "done", "why": "", "tries": int64(0), "next": nil})
			})
		})
	}
}

// TestOutcomesAfterARestart holds that a restart alone makes nobody write: what came of a handler is in the progress, or the handler runs
// again before others report it.
func TestOutcomesAfterARestart(t *testing.T) {
	chain := `{id: two, set: {status: {two: "${handlers.one.state}"}}}, {id: one, set: {status: {one: "${handlers.app.state}"}}}, `
	for name, handlers := range map[string]string{
		"after it": app + ", " + says, "before it": says + ", " + app, "a chain before it": chain + app,
		"after one that stores": appStores + ", " + saysAll, "before one that stores": saysAll + ", " + appStores,
		"with a lifecycle":            app + ", " + says + `], lifecycle: oneByOne, owns: [configmaps.v1`,
		"before it, with a lifecycle": says + ", " + app + `], lifecycle: oneByOne, owns: [configmaps.v1`,
	} {
		t.Run(name, func(t *testing.T) {
			outcomes(t, handlers, func(s *scene.Stage) {
				s.Begin()
				for _, size := range []int64{1, 2} {
					s.Resize(size)
					s.Advance(time.Second / 2)
					before := fmt.Sprint(s.Web().Object["status"])
					s.Forget()
					s.Process.Restart()
					s.Advance(time.Second / 2)
					s.Wrote()
					if now := fmt.Sprint(s.Web().Object["status"]); now != before || !strings.Contains(now, map[int64]string{1: "done", 2: "failed"}[size]) {
						t.Errorf("of size %d the status was %s, and is %s", size, before, now)
					}
				}
			})
		})
	}
}

// TestAnOutcomeOfARefusedChange holds that a handler whose change the server refuses has failed for those that report it.
func TestAnOutcomeOfARefusedChange(t *testing.T) {
	outcomes(t, `{id: app, set: {labels: {size: "${string(self.spec.size)}"}}}, `+says, func(s *scene.Stage) {
		s.Begin()
		s.WantStatus(map[string]any{"app": "done"})
		end := s.Refuse(scene.Foos, refusesLabel("size", "2"))
		s.Resize(2)
		s.Advance(time.Second / 2)
		s.WantStatus(map[string]any{"app": "failed"})
		end()
		s.Advance(time.Minute)
		s.WantStatus(map[string]any{"app": "done"})
	})
}

// TestAnOutcomeWithholdsSecrets holds that the message of a handler which reads a Secret does not show its values to others.
func TestAnOutcomeWithholdsSecrets(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, related: [{name: creds, resource: secrets.v1, object: creds}], handlers: [
		{id: app, set: {status: {n: "${int(string(base64.decode(related.creds.data.one)))}"}}},
		{id: says, set: {status: {why: "${handlers.app.message}"}}}]}`, func(s *scene.Stage) {
		s.Create(scene.PlainSecret)
		s.Begin()
		s.Settle()
		got := fmt.Sprint(scene.ValueAt(s.Web(), "status.why"))
		if strings.Contains(got, "hush") || !strings.Contains(got, "no more is shown") {
			t.Errorf("it says %q", got)
		}
	})
}

// refusesLabel is a review that refuses objects on which a label has a value.
func refusesLabel(key, value string) func(*unstructured.Unstructured) error {
	return func(o *unstructured.Unstructured) error {
		if o.GetLabels()[key] == value {
			return fmt.Errorf("the label %s is refused", key)
		}
		return nil
	}
}
