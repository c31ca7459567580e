// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func testResult() *result {
	r := &result{begun: time.Unix(0, 0)}
	r.part = mainPart
	r.subjects = subjects[:2]
	for _, v := range []float64{1, 3, 2} {
		r.records = append(r.records,
			record{Subject: subjects[0].name, Values: take{"backlog/cpu": v, "backlog/requests": 1, "idle/anon": 10}},
			record{Subject: subjects[1].name, Values: take{"backlog/cpu": 2 * v, "memory/anon": 110}})
	}
	r.objects = 10
	return r
}

func TestTheTableHasMediansSpreadAndRatios(t *testing.T) {
	var got strings.Builder
	r := testResult()
	r.writeRows(&got)
	if want := "| … processor time | 2 s (1–3) | 4 s (2–6), **× 2.00** | × 2 |"; !strings.Contains(got.String(), want) {
		t.Errorf("got %s, want a line %s", got.String(), want)
	}
}

func TestARunThatFailedDoesNotCount(t *testing.T) {
	r := testResult()
	r.records[0].Failure = "it did not work"
	if got := r.values(subjects[0], "backlog/cpu"); len(got) != 2 {
		t.Errorf("values: got %v, want two", got)
	}
	if r.failure() == nil {
		t.Error("no move is reported")
	}
}

func TestOnlyWhatMovedIsReported(t *testing.T) {
	r := testResult()
	before, now := r.ratios(), r.ratios()
	before.Ratios["backlog/cpu"] = map[string]float64{subjects[1].name: 2.1}
	var same, other strings.Builder
	r.tellMoves(&same, before, now)
	before.Ratios["backlog/cpu"] = map[string]float64{subjects[1].name: 1.5}
	r.tellMoves(&other, before, now)
	if !strings.Contains(same.String(), "* nothing") {
		t.Errorf("a move of 5 %% is reported: %s", same.String())
	}
	if want := "* worse: backlog/cpu of Handwerk in YAML: × 2.00, was × 1.50"; !strings.Contains(other.String(), want) {
		t.Errorf("got %s, want %s", other.String(), want)
	}
}
