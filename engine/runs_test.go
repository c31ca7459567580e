// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// overheard starts the operator and returns what takes the lines of its log that have the words, since it
// was called last.
func overheard(s *stage, words string, adjust ...func(*engine.Settings)) (take func() []string) {
	s.t.Helper()
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(args, words) {
			lines = append(lines, prefix+args)
		}
	}, funcr.Options{})
	s.Process = s.Start(s.Operator, append(adjust, func(e *engine.Settings) { e.Log = log })...)
	return func() []string {
		s.Settle()
		mu.Lock()
		defer mu.Unlock()
		out := lines
		lines = nil
		return out
	}
}

// deaf is a handler that heeds nothing for the time given.
func deaf(d time.Duration) dsl.Func {
	return func(ctx, *dsl.Request) error {
		<-time.After(d)
		return nil
	}
}

// TestLongRuns is law 9: what holds a worker and does not end is seen, and makes nothing unready.
func TestLongRuns(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a handler without a timeout that blocks is in the log and in what is said, until it ends": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("deaf", deaf(70*time.Minute)) },
			func(s *stage) {
				log := overheard(s, "has run for long")
				s.Create(web)
				s.Advance(59 * time.Second)
				well(s)
				if lines := log(); len(lines) > 0 {
					s.t.Errorf("the log says %v", lines)
				}
				s.Advance(2 * time.Second)
				ill(s, "running/"+foos+": deaf of default/web has run for 1m1s")
				lines := log()
				if len(lines) != 1 || !strings.Contains(lines[0], `"name"="web"`) || !strings.Contains(lines[0], `"handler"="deaf"`) || !strings.Contains(lines[0], `"resource"="`+foos) {
					s.t.Errorf("the log says %v", lines)
				}
				for _, c := range s.Process.Engine().Ready() {
					if c.State == ops.Fail {
						s.t.Errorf("%v makes the process unready", c)
					}
				}
				s.Advance(time.Hour)
				ill(s, "has run for 1h1m1s")
				if lines := log(); len(lines) != 5 { // after 2, 4, 8, 16 and 32 minutes
					s.t.Errorf("%d more lines in an hour: %v", len(lines), lines)
				}
				s.Advance(10 * time.Minute)
				well(s)
				log()
				s.Advance(10 * time.Hour)
				if lines := log(); len(lines) > 0 {
					s.t.Errorf("the log says %v", lines)
				}
			},
		},
		"so is a pass whose writes get no answer": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "report", reports) },
			func(s *stage) {
				log := overheard(s, "has run for long")
				s.DelayNext("patch", foos+"/status", 50*time.Second)
				s.DelayNext("patch", foos, 50*time.Second)
				s.Create(web)
				s.Advance(90 * time.Second)
				ill(s, "running/"+foos+": pass over default/web has run for 1m30s")
				if lines := log(); len(lines) != 1 || strings.Contains(lines[0], "handler") {
					s.t.Errorf("the log says %v", lines)
				}
				s.Advance(time.Minute)
				well(s)
			},
		},
		"and a schedule": {
			func(foo *dsl.Resource, j *journal) { foo.Schedule(hourly(), "sweep", deaf(10*time.Minute)) },
			func(s *stage) {
				log := overheard(s, "has run for long")
				s.Advance(time.Hour + 2*time.Minute)
				ill(s, "sweep of")
				if len(log()) == 0 {
					s.t.Error("the log says nothing")
				}
				s.Advance(30 * time.Minute)
				well(s)
			},
		},
		"one that begins while another is long is seen as soon": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("deaf", deaf(8*time.Hour)) },
			func(s *stage) {
				log := overheard(s, "has run for long")
				s.Create(web)
				s.Advance(5 * time.Hour)
				log()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
				s.Advance(2 * time.Minute)
				if lines := log(); len(lines) == 0 || !strings.Contains(lines[0], "second") {
					s.t.Errorf("the log says %v", lines)
				}
				ill(s, "default/second")
				s.Advance(9 * time.Hour) // a bubble waits for nobody
			},
		},
		"of many, a few are named": {
			func(foo *dsl.Resource, j *journal) {
				foo.Workers = 8
				foo.OnCreate("deaf", deaf(time.Hour))
			},
			func(s *stage) {
				s.Launch()
				for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: ` + name + `}}`)
				}
				s.Advance(2 * time.Minute)
				ill(s, "deaf of default/a has run for 2m0s", "; and 3 more")
				s.Advance(2 * time.Hour)
				well(s)
			},
		},
	})
}
