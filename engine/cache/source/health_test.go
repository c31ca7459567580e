// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

// TestProblems holds what is said of the problems of single namespaces: as a warning while others have none, and
// as the state of the feed when all have some.
func TestProblems(t *testing.T) {
	forbidden := func(ns string, verbs ...string) State {
		return State{Phase: Forbidden, Text: strings.Join(verbs, ", ") + " in namespace " + ns, Missing: verbs}
	}
	faulty := func(text string, silent bool) State { return State{Phase: Faulty, Text: text, Logged: silent} }
	many := Problems{}
	for i := range 12 {
		ns := fmt.Sprintf("team-%02d", i)
		many[ns] = faulty(ns+" fails", false)
	}
	tests := map[string]struct {
		all     Problems
		warning string
		outcome State
	}{
		"none": {Problems{}, "", State{Phase: Running}},
		"missing rights, by namespace": {
			Problems{"b": forbidden("b", "list", "watch"), "a": forbidden("a", "get")},
			"forbidden: get in namespace a; list, watch in namespace b",
			State{Phase: Forbidden, Text: "get in namespace a; list, watch in namespace b"},
		},
		"a fault beside a missing right": {
			Problems{"b": forbidden("b", "list"), "a": faulty("no space left", false)},
			"forbidden: list in namespace b; faulty: no space left",
			State{Phase: Forbidden, Text: "list in namespace b"},
		},
		"the fault that is not logged comes first": {
			Problems{"a": faulty("away", true), "b": faulty("no space left", false)},
			"faulty: away; faulty: no space left", faulty("no space left", false),
		},
		"faults that are logged": {
			Problems{"a": faulty("away", true), "b": faulty("away, too", true)},
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
			if diff := cmp.Diff(tt.outcome, tt.all.Outcome()); diff != "" {
				t.Errorf("the state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDegradation holds which state of a feed that is degraded already is news.
func TestDegradation(t *testing.T) {
	of := func(phase Phase, text string) State { return State{Phase: phase, Text: text} }
	tests := map[string]struct {
		before, now State
		news        bool
	}{
		"the same reason":                      {of(Forbidden, "list"), of(Forbidden, "list"), false},
		"another right":                        {of(Forbidden, "list"), of(Forbidden, "watch"), true},
		"another fault is none":                {of(Faulty, "no answer"), of(Faulty, "no space left"), false},
		"a fault after a missing right":        {of(Forbidden, "list"), of(Faulty, "no space left"), true},
		"what comes back cannot be listed yet": {of(Unserved, "gone"), State{Phase: Faulty, Text: "404", NotFound: true}, false},
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
			if next.begun != begun.begun || next.before != 2 || !next.logged {
				t.Errorf("the degradation is another one: %+v after %+v", next, begun)
			}
			if next.next(of(Starting, ""), 7) != next || next.next(of(Running, ""), 7) != nil {
				t.Error("it ends before the feed runs, or not then")
			}
		})
	}
}

// TestSurvey holds when objects that a problem hid are there again: when it is over, and they are listed.
func TestSurvey(t *testing.T) {
	bad, good := State{Phase: Faulty, Text: "no space left"}, State{Phase: Running}
	h := newHealth(logr.Discard())
	steps := []struct {
		what      string
		now       State
		all       Problems
		listing   []string
		recovered bool
		status    Status
	}{
		{"nothing is wrong", good, Problems{}, nil, false, Status{Phase: Running}},
		{"a namespace has a problem", good, Problems{"a": bad}, nil, false, Status{Phase: Running, Warning: "faulty: no space left"}},
		{"all have", bad, Problems{"a": bad, "b": bad}, nil, false, Status{Phase: Faulty, Message: "no space left"}},
		{"one is over, and being listed", good, Problems{"b": bad}, []string{"a"}, false, Status{Phase: Running, Warning: "faulty: no space left"}},
		{"it is listed", good, Problems{"b": bad}, nil, true, Status{Phase: Running, Warning: "faulty: no space left"}},
		{"that was said", good, Problems{"b": bad}, nil, false, Status{Phase: Running, Warning: "faulty: no space left"}},
		{"the other one is over", good, Problems{}, nil, true, Status{Phase: Running}},
	}
	for _, step := range steps {
		recovered := h.SetAll(step.now, 0, step.all, step.listing)
		if diff := cmp.Diff(step.status, h.Status()); diff != "" || recovered != step.recovered {
			t.Errorf("%s: recovered is %v; the status (-want +got):\n%s", step.what, recovered, diff)
		}
		if _, is := step.all["b"]; is != (h.In("b").Phase == Faulty) {
			t.Errorf("%s: the namespace b is %s", step.what, h.In("b").Phase)
		}
	}
}
