// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
)

// testResult has three rounds of two subjects. The second one takes twice as long.
func testResult() *result {
	r := &result{}
	r.subjects, r.rounds, r.objects = subjects[:2], 3, usual
	for round, v := range []float64{1, 3, 2} {
		r.records = append(r.records,
			record{subject: subjects[0].name, round: round, scenario: "backlog", values: take{"backlog/cpu": v, "idle/anon": 10}},
			record{subject: subjects[1].name, round: round, scenario: "backlog", values: take{"backlog/cpu": 2 * v, "backlog/anon": 10_010, "idle/anon": 10}})
	}
	return r
}

func TestTheTableHasMediansSpreadAndRatios(t *testing.T) {
	got := testResult().table()
	for _, want := range []string{"| … processor time | 2 s (1–3) | 4 s (2–6), **× 2.00** | × 1.9 |", "| … its own an object | – | 2 B |"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want a line %s", got, want)
		}
	}
}

func TestATrialThatFailedDoesNotCount(t *testing.T) {
	r := testResult()
	r.records[0].failure = errors.New("it did not work")
	if got := r.values(subjects[0], "backlog/cpu"); len(got) != 2 {
		t.Errorf("values: got %v, want two", got)
	}
	if r.failure() == nil {
		t.Error("the failure is not reported")
	}
	if got := r.ratios("backlog/cpu"); len(got) != 2 {
		t.Errorf("ratios: got %v, want those of the rounds that have both", got)
	}
}

func TestSurenessIsThatOfTheSigns(t *testing.T) {
	for name, test := range map[string]struct {
		differences []float64
		want        float64
	}{
		"all alike":                       {[]float64{0.1, 0.2, 0.1, 0.3, 0.1, 0.2, 0.1}, 1 - 2.0/128},
		"all alike the other way":         {[]float64{-1, -2, -3, -4, -5, -6, -7}, 1 - 2.0/128},
		"the least one is otherwise":      {[]float64{-0.1, 2, 3, 4, 5, 6, 7}, 1 - 4.0/128},
		"a large one otherwise says less": {[]float64{-70, 2, 3, 4, 5, 6, 1}, 1 - 38.0/128},
		"half and half":                   {[]float64{1, -1.1, 2.1, -2}, 0},
		"nothing differs":                 {[]float64{0, 0, 0}, 0},
		"nothing is known":                {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sureness(test.differences); got != test.want {
				t.Errorf("sureness is %v, want %v", got, test.want)
			}
		})
	}
}

func TestMovesAreThoseThatAllRoundsShow(t *testing.T) {
	r := &result{}
	r.subjects, r.rounds = paired("main"), 7
	for round := range r.rounds {
		noise := float64(round % 3)
		r.records = append(r.records,
			record{subject: "before", round: round, values: take{"backlog/cpu": 10 + noise, "storm/cpu": 10 + noise, "react/cpu": 10}},
			record{subject: "now", round: round, values: take{"backlog/cpu": 9 + noise, "storm/cpu": 11 + noise, "react/cpu": 9 + noise}})
	}
	worse, held, found := strings.Cut(r.moves(), "Not shown to have moved")
	if !found || !strings.Contains(worse, "* better: backlog/cpu") || !strings.Contains(worse, "* worse: storm/cpu") || !strings.Contains(held, "* react/cpu") {
		t.Errorf("got %s, want a better backlog, a worse storm, and a reaction that has not moved", r.moves())
	}
}
