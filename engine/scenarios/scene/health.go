// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// CheckNamed returns the text of one of the checks, by name.
func CheckNamed(checks []ops.Check, name string) string {
	for _, c := range checks {
		if c.Name == name {
			return c.String()
		}
	}
	return ""
}

// ReadyMessages returns the messages of /readyz?verbose.
func ReadyMessages(s *Stage) string {
	s.Settle()
	var out []string
	for _, c := range s.Process.Engine().Ready() {
		if c.Message != "" {
			out = append(out, c.Name+": "+c.Message)
		}
	}
	return strings.Join(out, "\n")
}

// WantWell fails the test if /readyz?verbose has a message.
func WantWell(s *Stage) {
	s.T.Helper()
	if got := ReadyMessages(s); got != "" {
		s.T.Errorf("/readyz?verbose says %s", got)
	}
}

// WantUnwell fails the test unless the messages of /readyz?verbose have these words.
func WantUnwell(s *Stage, words ...string) {
	s.T.Helper()
	got := ReadyMessages(s)
	for _, w := range words {
		if !strings.Contains(got, w) {
			s.T.Errorf("/readyz?verbose does not say %q: %s", w, got)
		}
	}
}

// NotReadyObjects returns the lines of /readyz?verbose about objects that wait, fail or are held.
func NotReadyObjects(s *Stage) (out []string) {
	s.T.Helper()
	s.Settle()
	for _, c := range s.Process.Engine().Ready() {
		kind, _, _ := strings.Cut(c.Name, "/")
		if slices.Contains([]string{"waiting", "failing", "held"}, kind) {
			out = append(out, c.String())
		}
	}
	return out
}

// CountedRuns returns how many runs of a handler the metrics have counted with an outcome.
func CountedRuns(t *testing.T, metrics *ops.Metrics, handler, outcome string) (n float64) {
	t.Helper()
	families, err := metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "handwerk_handler_runs_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["handler"] == handler && labels["outcome"] == outcome {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
