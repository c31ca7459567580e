// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

const eventsOf = "events.v1.events.k8s.io"

// declares is an operator whose handler says that it makes Deployments.
func declares(foo *dsl.Resource, j *journal) {
	foo.OnReconcile("child", j.Note("child", keepsDeployment), dsl.Needs("get, create, patch", "deployments.apps"))
}

// keepsDeployment makes a Deployment without the engine knowing that it watches any.
func keepsDeployment(ctx ctx, r *dsl.Request) error {
	_, err := r.Client.Create(ctx, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": r.Object.GetName(), "namespace": r.Object.GetNamespace()},
	})
	return err
}

// saysMissing is what metrics say is missing, a line each.
func saysMissing(s *stage, m *ops.Metrics) (out []string) {
	s.t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "handwerk_missing_rights" {
			continue
		}
		for _, series := range f.GetMetric() {
			out = append(out, fmt.Sprintf("%s %s %v", series.GetLabel()[0].GetValue(), series.GetLabel()[1].GetValue(), series.GetGauge().GetValue()))
		}
	}
	return out
}

// refusesIntroductions keeps the process from learning who it is.
func refusesIntroductions(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			return nil, errors.New("connection refused")
		}
		return next.RoundTrip(r)
	})
}

// stillReady checks that /readyz does.
func stillReady(s *stage) {
	s.t.Helper()
	for _, c := range s.Process.Engine().Ready() {
		if c.State == ops.Fail {
			s.t.Errorf("/readyz fails: %s", c)
		}
	}
}

// TestMissingRightsAreTold: an account that may watch everything and write nothing is not well, and
// /readyz?verbose, a metric and the log say so before a handler is refused; /readyz passes.
func TestMissingRightsAreTold(t *testing.T) {
	metrics := ops.NewMetrics()
	measured := func(e *engine.Settings) { e.Metrics = metrics }
	scenarios(t, map[string]scenario{
		"what a handler needs, with who needs it and the account": {declares, func(s *stage) {
			s.Forbid("create", deployments)
			s.Process = s.Start(s.Operator, measured)
			ill(s, "rights/deployments.apps: may not create deployments.apps (handler foos/child); account operator")
			stillReady(s)
			if diff := cmp.Diff([]string{"deployments.apps create 1"}, saysMissing(s, metrics)); diff != "" {
				s.t.Errorf("metrics (-want +got):\n%s", diff)
			}
			s.Allow("create", deployments)
			s.Advance(2 * time.Second)
			well(s)
			if got := saysMissing(s, metrics); len(got) > 0 {
				s.t.Errorf("metrics still say %v", got)
			}
		}},
		"what the engine sends": {declares, func(s *stage) {
			s.Forbid("create", eventsOf)
			s.Forbid("patch", eventsOf)
			s.Launch()
			ill(s, "rights/events.events.k8s.io: may not create events.events.k8s.io (engine: sends Events); "+
				"may not patch events.events.k8s.io (engine: sends Events); account operator")
		}},
		"what a feed asks for is told by the feed, with the account, and not twice": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.Forbid("patch", foos)
				s.Process = s.Start(s.Operator, measured)
				if diff := cmp.Diff("resource/"+foos+": forbidden: patch; account operator", ready(s)); diff != "" {
					s.t.Errorf("what is said (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"foos.example.com patch 1"}, saysMissing(s, metrics)); diff != "" {
					s.t.Errorf("metrics (-want +got):\n%s", diff)
				}
			},
		},
		"in the log once, and once more when it is given": {declares, func(s *stage) {
			s.Forbid("create", deployments)
			log := overheard(s, "right")
			s.Advance(time.Hour)
			if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], `"right is missing" "handwerk.warning"=true "right"="create deployments.apps" "for"="handler foos/child" "account"="operator"`) {
				s.t.Errorf("the log says %v", lines)
			}
			s.Allow("create", deployments)
			s.Advance(5 * time.Minute)
			if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], `"missing right was granted, or is no longer needed" "right"="create deployments.apps"`) {
				s.t.Errorf("the log says %v", lines)
			}
		}},
		"in the log once, however many objects it is refused for": {declares, func(s *stage) {
			s.Forbid("create", deployments)
			log := overheard(s, "")
			s.Advance(time.Minute)
			log()
			for i := range 20 {
				s.Create(strings.Replace(web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
			}
			s.Advance(15 * time.Minute)
			if lines := log(); len(lines) > 0 {
				s.t.Errorf("the log says again\n%s", strings.Join(lines, "\n"))
			}
			if events := s.Events(); len(events) != 20 {
				s.t.Errorf("%d objects of 20 have an Event", len(events))
			}
		}},
		"those that are given together are told together": {declares, func(s *stage) {
			s.Forbid("create", eventsOf)
			s.Forbid("patch", eventsOf)
			log := overheard(s, "missing right was granted")
			s.Advance(time.Hour)
			s.Allow("create", eventsOf)
			s.Allow("patch", eventsOf)
			lines := log()
			for end := time.Now().Add(10 * time.Minute); len(lines) == 0 && time.Now().Before(end); lines = log() {
				s.Advance(time.Second)
			}
			s.Advance(3 * time.Second)
			if lines = append(lines, log()...); len(lines) != 2 {
				s.t.Errorf("the log says %v", lines)
			}
		}},
		"nobody is told of one without which the operator works": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				declares(foo, j)
			}, func(s *stage) {
				s.Forbid("update", foos+"/finalizers")
				log := overheard(s, "right")
				well(s)
				if lines := log(); len(lines) > 0 {
					s.t.Errorf("the log says %v", lines)
				}
			},
		},
		"one that is taken away is told when a request is refused": {declares, func(s *stage) {
			s.Launch()
			s.Forbid("create", deployments)
			s.Advance(time.Hour)
			well(s)
			s.Create(web)
			s.Advance(10 * time.Second)
			ill(s, "rights/deployments.apps: may not create deployments.apps (handler foos/child)")
		}},
		"one for Events as well": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("chatter", chatters) },
			func(s *stage) {
				s.Launch()
				s.Forbid("create", eventsOf)
				s.Advance(time.Hour)
				well(s)
				s.Create(web)
				s.Advance(10 * time.Second)
				ill(s, "may not create events.events.k8s.io")
			},
		},
		"one that is given wakes who was refused, and who succeeds ends what is said": {declares, func(s *stage) {
			s.Forbid("create", deployments)
			s.Launch()
			s.Create(web)
			s.Advance(time.Hour)
			s.Allow("create", deployments)
			s.Advance(33 * time.Second)
			if s.Get(deployments, "default", "web") == nil {
				s.t.Error("there is no child")
			}
			well(s)
		}},
		"an account that nobody names is left out": {declares, func(s *stage) {
			s.Forbid("create", deployments)
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Config.Wrap(refusesIntroductions) })
			ill(s, "may not create deployments.apps (handler foos/child)")
			if said := ready(s); strings.Contains(said, "account") {
				s.t.Errorf("it is said that %s", said)
			}
		}},
	})
}

// TestRightsAreAskedForWithMeasure: questions cost the API server something.
func TestRightsAreAskedForWithMeasure(t *testing.T) {
	scenarios(t, map[string]scenario{
		"nothing is asked while nothing changes": {declares, func(s *stage) {
			var asked questions
			s.Process = s.Start(s.Operator, asked.count)
			if n := asked.take(); n == 0 || n > 15 {
				s.t.Errorf("%d questions at the start", n)
			}
			s.Create(web)
			s.Advance(24 * time.Hour)
			if n := asked.take(); n > 0 {
				s.t.Errorf("%d questions in a day", n)
			}
		}},
		"one that is missing costs a question each five minutes": {declares, func(s *stage) {
			var asked questions
			s.Forbid("create", deployments)
			s.Process = s.Start(s.Operator, asked.count)
			s.Advance(time.Hour)
			asked.take()
			s.Advance(time.Hour)
			if n := asked.take(); n < 10 || n > 16 {
				s.t.Errorf("%d questions in an hour", n)
			}
		}},
		"a thousand refusals cost a few questions": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("child", keepsDeployment, dsl.Retries(0), dsl.Needs("get, create", "deployments.apps"))
			}, func(s *stage) {
				var asked questions
				s.Process = s.Start(s.Operator, asked.count)
				s.Advance(time.Minute)
				s.Forbid("create", deployments)
				asked.take()
				for i := range 300 {
					s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}}`, i))
				}
				s.Advance(10 * time.Second)
				if n := asked.take(); n < 1 || n > 6 {
					s.t.Errorf("%d questions", n)
				}
			},
		},
		"rights in each namespace are as good as rights in all": {declares, func(s *stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 5)
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
			s.Forbid("create", deployments, "other")
			s.Process = s.Start(s.Operator, asked.count)
			well(s)
			asked.take()
			s.Advance(time.Hour)
			if n := asked.take(); n > 0 {
				s.t.Errorf("%d questions in an hour about rights that are there", n)
			}
		}},
		"of sixty namespaces ten are asked for": {declares, func(s *stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 60)
			s.Forbid("create", deployments, "team-0", "team-1")
			s.Process = s.Start(s.Operator, asked.count)
			ill(s, "rights/deployments.apps: may not create deployments.apps in namespace team-0, team-1 (10 of 60 were asked for) (handler foos/child); account operator")
			if n := asked.take(); n > 60*2+15+10 { // the feed asks in each
				s.t.Errorf("%d questions at the start", n)
			}
		}},
		"a namespace that joins the scope is asked for": {declares, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 2)
			s.Forbid("create", deployments, "team-2")
			s.Launch()
			well(s)
			s.Create(team(2))
			s.Advance(10 * time.Second)
			ill(s, "rights/deployments.apps: may not create deployments.apps in namespace team-2 (handler foos/child)")
		}},
		"namespaces with names are asked for one by one where not all are allowed": {declares, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"team-0", "team-1"}
			teams(s, 2)
			s.Forbid("create", deployments, "team-1")
			s.Launch()
			ill(s, "may not create deployments.apps in namespace team-1 (handler foos/child)")
		}},
	})
}
