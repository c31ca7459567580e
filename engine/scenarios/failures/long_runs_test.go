// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ignoresContext is a handler that heeds nothing for the time given.
func ignoresContext(d time.Duration) dsl.Func {
	return func(context.Context, *dsl.Request) error {
		<-time.After(d)
		return nil
	}
}

// TestARunThatDoesNotEndIsReported is law 9: what holds a worker and does not end is seen, and makes nothing unready.
func TestARunThatDoesNotEndIsReported(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a handler without a timeout that blocks is in the log and in what is said, until it ends": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("deaf", ignoresContext(70*time.Minute)) },
			Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "has run for long")
				s.Create(scene.Web)
				s.Advance(59 * time.Second)
				scene.WantWell(s)
				if lines := log(); len(lines) > 0 {
					s.T.Errorf("the log says %v", lines)
				}
				s.Advance(2 * time.Second)
				scene.WantUnwell(s, "running/"+scene.Foos+": deaf of default/web has run for 1m1s")
				lines := log()
				if len(lines) != 1 || !strings.Contains(lines[0], `"name"="web"`) || !strings.Contains(lines[0], `"handler"="deaf"`) || !strings.Contains(lines[0], `"resource"="`+scene.Foos) {
					s.T.Errorf("the log says %v", lines)
				}
				for _, c := range s.Process.Engine().Ready() {
					if c.State == ops.Fail {
						s.T.Errorf("%v makes the process unready", c)
					}
				}
				s.Advance(time.Hour)
				scene.WantUnwell(s, "has run for 1h1m1s")
				if lines := log(); len(lines) != 5 { // after 2, 4, 8, 16 and 32 minutes
					s.T.Errorf("%d more lines in an hour: %v", len(lines), lines)
				}
				s.Advance(10 * time.Minute)
				scene.WantWell(s)
				log()
				s.Advance(10 * time.Hour)
				if lines := log(); len(lines) > 0 {
					s.T.Errorf("the log says %v", lines)
				}
			},
		},
		"so is a reconcile whose writes get no answer": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "report", scene.Reports)
			},
			Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "has run for long")
				s.DelayNext("patch", scene.Foos+"/status", 50*time.Second)
				s.DelayNext("patch", scene.Foos, 50*time.Second)
				s.Create(scene.Web)
				s.Advance(90 * time.Second)
				scene.WantUnwell(s, "running/"+scene.Foos+": reconcile of default/web has run for 1m30s")
				if lines := log(); len(lines) != 1 || strings.Contains(lines[0], "handler") {
					s.T.Errorf("the log says %v", lines)
				}
				s.Advance(time.Minute)
				scene.WantWell(s)
			},
		},
		"and a schedule": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Schedule(scene.Hourly(), "sweep", ignoresContext(10*time.Minute))
			},
			Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "has run for long")
				s.Advance(time.Hour + 2*time.Minute)
				scene.WantUnwell(s, "sweep of")
				if len(log()) == 0 {
					s.T.Error("the log says nothing")
				}
				s.Advance(30 * time.Minute)
				scene.WantWell(s)
			},
		},
		"one that begins while another is long is seen as soon": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("deaf", ignoresContext(8*time.Hour)) },
			Play: func(s *scene.Stage) {
				log := scene.LaunchWithLog(s, "has run for long")
				s.Create(scene.Web)
				s.Advance(5 * time.Hour)
				log()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
				s.Advance(2 * time.Minute)
				if lines := log(); len(lines) == 0 || !strings.Contains(lines[0], "second") {
					s.T.Errorf("the log says %v", lines)
				}
				scene.WantUnwell(s, "default/second")
				s.Advance(9 * time.Hour) // a bubble's time does not wait
			},
		},
		"of many, a few are named": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Workers = 8
				foo.OnCreate("deaf", ignoresContext(time.Hour))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: ` + name + `}}`)
				}
				s.Advance(2 * time.Minute)
				scene.WantUnwell(s, "deaf of default/a has run for 2m0s", "; and 3 more")
				s.Advance(2 * time.Hour)
				scene.WantWell(s)
			},
		},
	})
}
