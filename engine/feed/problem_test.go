// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestProblems holds what is said of the problems of single namespaces: as a warning while others have none, and
// as the state of the feed when all have some.
func TestProblems(t *testing.T) {
	forbidden := func(ns string, verbs ...string) state {
		return state{phase: Forbidden, text: strings.Join(verbs, ", ") + " in namespace " + ns, missing: verbs}
	}
	faulty := func(text string, silent bool) state { return state{phase: Faulty, text: text, silent: silent} }
	many := problems{}
	for i := range 12 {
		ns := fmt.Sprintf("team-%02d", i)
		many[ns] = faulty(ns+" fails", false)
	}
	tests := map[string]struct {
		all     problems
		warning string
		outcome state
	}{
		"none": {problems{}, "", state{phase: Running}},
		"missing rights, by namespace": {
			problems{"b": forbidden("b", "list", "watch"), "a": forbidden("a", "get")},
			"forbidden: get in namespace a; list, watch in namespace b",
			state{phase: Forbidden, text: "get in namespace a; list, watch in namespace b"},
		},
		"a fault beside a missing right": {
			problems{"b": forbidden("b", "list"), "a": faulty("no space left", false)},
			"forbidden: list in namespace b; faulty: no space left",
			state{phase: Forbidden, text: "list in namespace b"},
		},
		"the fault that the log does not tell of comes first": {
			problems{"a": faulty("away", true), "b": faulty("no space left", false)},
			"faulty: away; faulty: no space left", faulty("no space left", false),
		},
		"faults that the log tells of": {
			problems{"a": faulty("away", true), "b": faulty("away, too", true)},
			"faulty: away; faulty: away, too", faulty("away", true),
		},
		"more than anybody reads": {
			many, "faulty: team-00 fails; faulty: team-01 fails; faulty: team-02 fails; faulty: team-03 fails; faulty: team-04 fails; " +
				"faulty: team-05 fails; faulty: team-06 fails; faulty: team-07 fails; faulty: team-08 fails; faulty: team-09 fails; and 2 more",
			faulty("team-00 fails", false),
		},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tt.warning, tt.all.String()); diff != "" {
				t.Errorf("the warning (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.outcome, tt.all.outcome(), cmp.AllowUnexported(state{})); diff != "" {
				t.Errorf("the state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDegradation holds which state of a feed that is degraded already is news.
func TestDegradation(t *testing.T) {
	of := func(phase Phase, text string) state { return state{phase: phase, text: text} }
	tests := map[string]struct {
		before, now state
		news        bool
	}{
		"the same reason":                      {of(Forbidden, "list"), of(Forbidden, "list"), false},
		"another right":                        {of(Forbidden, "list"), of(Forbidden, "watch"), true},
		"another fault is none":                {of(Faulty, "no answer"), of(Faulty, "no space left"), false},
		"a fault after a missing right":        {of(Forbidden, "list"), of(Faulty, "no space left"), true},
		"what comes back cannot be listed yet": {of(Unserved, "gone"), state{phase: Faulty, text: "404", unserved: true}, false},
		"what comes back is broken":            {of(Unserved, "gone"), of(Faulty, "no space left"), true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			var none *degradation
			begun := none.next(tt.before, 3)
			if news := !begun.implies(tt.now); news != tt.news {
				t.Errorf("it is news: %v", news)
			}
			next := begun.next(tt.now, 7)
			if next.begun != begun.begun || next.before != 2 || !next.told {
				t.Errorf("the degradation is another one: %+v after %+v", next, begun)
			}
			if next.next(of(Starting, ""), 7) != next || next.next(of(Running, ""), 7) != nil {
				t.Error("it ends before the feed runs, or not then")
			}
		})
	}
}

// TestPatience holds when a feed that is not well looks again.
func TestPatience(t *testing.T) {
	type step struct {
		passes               time.Duration
		again, running, news bool
		// wait is how long it is until the next look at most, and 20 % less at least; zero for none.
		wait time.Duration
	}
	tests := map[string][]step{
		"one that runs does not look again":    {{0, false, true, false, 0}},
		"waits double up to ten seconds":       {{0, true, false, false, time.Second}, {1, true, false, false, 2 * time.Second}, {2, true, false, false, 4 * time.Second}, {4, true, false, false, 8 * time.Second}, {8, true, false, false, 10 * time.Second}, {10, true, false, false, 10 * time.Second}},
		"a moment of running begins none anew": {{0, true, false, false, time.Second}, {1, true, true, false, 2 * time.Second}, {2, true, false, false, 4 * time.Second}},
		"half a minute of it does":             {{0, true, false, false, time.Second}, {1, false, true, false, 0}, {30, true, false, false, time.Second}},
		"so does what it may have waited for":  {{0, true, false, false, time.Second}, {1, true, false, false, 2 * time.Second}, {0, true, false, true, time.Second}},
	}
	for title, steps := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := patience{}
				for i, s := range steps {
					<-time.After(s.passes * time.Second)
					begun, next := time.Now(), p.wait(s.again, s.running, s.news)
					if next == nil || s.wait == 0 {
						if next != nil || s.wait != 0 {
							t.Errorf("step %d: it looks again: %v", i, next != nil)
						}
						continue
					}
					<-next
					if took := time.Since(begun); took > s.wait || took < s.wait*8/10 {
						t.Errorf("step %d: it waits %s, want %s", i, took, s.wait)
					}
				}
			})
		})
	}
}
