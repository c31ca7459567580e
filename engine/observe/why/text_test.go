// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// written is the text of an answer.
func written(t *testing.T, a why.Answer) string {
	t.Helper()
	var out strings.Builder
	if err := why.Text(&out, &a, false); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTimesAreSaidRight(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		90 * time.Second: "1m30s", 5*time.Minute + 10*time.Second: "5m10s", 10 * time.Minute: "10m", 45*time.Minute + 50*time.Second: "45m50s",
		20 * time.Hour: "20h", 10*time.Hour + 10*time.Minute + 10*time.Second: "10h10m", 1500 * time.Millisecond: "2s", 4 * time.Millisecond: "4ms",
	} {
		due, since := now.Add(d), now.Add(-d)
		got := written(t, why.Answer{
			At: now, Kind: "Foo", Name: "web", Verdict: "failing", Health: "failing", Since: &since, Due: &due, Idle: &why.Idle{Says: "no handler runs", Until: &due},
			Deletion: &why.Deletion{Since: since}, Handlers: []why.Handler{{ID: "app", Running: &since}},
		})
		for _, line := range []string{
			"  failing, for " + want, "no handler runs; the next reconcile is in " + want, "the operator looks at it again by itself in " + want,
			"its deletion began " + want + " ago", "handler app has been running for " + want,
		} {
			if !strings.Contains(got, line) {
				t.Errorf("%s: no line %q in:\n%s", d, line, got)
			}
		}
	}
}
