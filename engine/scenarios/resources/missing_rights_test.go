// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const eventsOf = "events.v1.events.k8s.io"

// declares is an operator whose handler says that it makes Deployments.
func declares(foo *dsl.Resource, j *kit.Journal) {
	foo.OnReconcile("child", j.Note("child", keepsDeployment), dsl.Needs("get, create, patch", "deployments.apps"))
}

// keepsDeployment makes a Deployment without the engine knowing that it watches any.
func keepsDeployment(ctx context.Context, r *dsl.Request) error {
	_, err := r.Client.Create(ctx, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": r.Object.GetName(), "namespace": r.Object.GetNamespace()},
	})
	return err
}

// saysMissing is what metrics say is missing, a line each.
func saysMissing(s *scene.Stage, m *ops.Metrics) (out []string) {
	s.T.Helper()
	for _, series := range scene.Series(s.T, m, "handwerk_missing_rights") {
		out = append(out, fmt.Sprintf("%s %s %v", series.GetLabel()[0].GetValue(), series.GetLabel()[1].GetValue(), series.GetGauge().GetValue()))
	}
	return out
}

// refusesIntroductions keeps the process from learning who it is.
func refusesIntroductions(next http.RoundTripper) http.RoundTripper {
	return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			return nil, errors.New("connection refused")
		}
		return next.RoundTrip(r)
	})
}

// wantReady checks that /readyz does.
func wantReady(s *scene.Stage) {
	s.T.Helper()
	for _, c := range s.Process.Engine().Ready() {
		if c.State == ops.Fail {
			s.T.Errorf("/readyz fails: %s", c)
		}
	}
}

// TestMissingRightsAreReportedBeforeARefusal: an account that may watch everything and write nothing is not well, and
// /readyz?verbose, a metric and the log say so before a handler is refused; /readyz passes.
func TestMissingRightsAreReportedBeforeARefusal(t *testing.T) {
	metrics := ops.NewMetrics()
	measured := func(e *engine.Settings) { e.Metrics = metrics }
	scene.PlayAll(t, map[string]scene.Scenario{
		"what a handler needs, with who needs it and the account": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", scene.Deployments)
			s.Process = s.Start(s.Operator, measured)
			scene.WantUnwell(s, "rights/deployments.apps: may not create deployments.apps (handler foos/child); account operator")
			wantReady(s)
			if diff := cmp.Diff([]string{"deployments.apps create 1"}, saysMissing(s, metrics)); diff != "" {
				s.T.Errorf("metrics (-want +got):\n%s", diff)
			}
			s.Allow("create", scene.Deployments)
			s.Advance(2 * time.Second)
			scene.WantWell(s)
			if got := saysMissing(s, metrics); len(got) > 0 {
				s.T.Errorf("metrics still say %v", got)
			}
		}},
		"what the engine sends": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", eventsOf)
			s.Forbid("patch", eventsOf)
			s.Launch()
			scene.WantUnwell(s, "rights/events.events.k8s.io: may not create events.events.k8s.io (engine: sends Events); "+
				"may not patch events.events.k8s.io (engine: sends Events); account operator")
		}},
		"what a feed asks for is reported by the feed, with the account, and not twice": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Forbid("patch", scene.Foos)
				s.Process = s.Start(s.Operator, measured)
				if diff := cmp.Diff("resource/"+scene.Foos+": forbidden: patch; account operator", scene.ReadyMessages(s)); diff != "" {
					s.T.Errorf("what is said (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"foos.example.com patch 1"}, saysMissing(s, metrics)); diff != "" {
					s.T.Errorf("metrics (-want +got):\n%s", diff)
				}
			},
		},
		"in the log once, and once more when it is given": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", scene.Deployments)
			log := scene.LaunchWithLog(s, "right")
			s.Advance(time.Hour)
			if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], `"right is missing" "handwerk.warning"=true "right"="create deployments.apps" "for"="handler foos/child" "account"="operator"`) {
				s.T.Errorf("the log says %v", lines)
			}
			s.Allow("create", scene.Deployments)
			s.Advance(5 * time.Minute)
			if lines := log(); len(lines) != 1 || !strings.Contains(lines[0], `"missing right was granted, or is no longer needed" "right"="create deployments.apps"`) {
				s.T.Errorf("the log says %v", lines)
			}
		}},
		"in the log once, however many objects it is refused for": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", scene.Deployments)
			log := scene.LaunchWithLog(s, "")
			s.Advance(time.Minute)
			log()
			for i := range 20 {
				s.Create(strings.Replace(scene.Web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
			}
			s.Advance(15 * time.Minute)
			if lines := log(); len(lines) > 0 {
				s.T.Errorf("the log says again\n%s", strings.Join(lines, "\n"))
			}
			if events := s.Events(); len(events) != 20 {
				s.T.Errorf("%d objects of 20 have an Event", len(events))
			}
		}},
		"those that are given together are reported together": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", eventsOf)
			s.Forbid("patch", eventsOf)
			log := scene.LaunchWithLog(s, "missing right was granted")
			s.Advance(time.Hour)
			s.Allow("create", eventsOf)
			s.Allow("patch", eventsOf)
			lines := log()
			for end := time.Now().Add(10 * time.Minute); len(lines) == 0 && time.Now().Before(end); lines = log() {
				s.Advance(time.Second)
			}
			s.Advance(3 * time.Second)
			if lines = append(lines, log()...); len(lines) != 2 {
				s.T.Errorf("the log says %v", lines)
			}
		}},
		"an optional one is not reported": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				declares(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Forbid("update", scene.Foos+"/finalizers")
				log := scene.LaunchWithLog(s, "right")
				scene.WantWell(s)
				if lines := log(); len(lines) > 0 {
					s.T.Errorf("the log says %v", lines)
				}
			},
		},
		"one that is taken away is reported when a request is refused": {Operator: declares, Play: func(s *scene.Stage) {
			s.Launch()
			s.Forbid("create", scene.Deployments)
			s.Advance(time.Hour)
			scene.WantWell(s)
			s.Create(scene.Web)
			s.Advance(10 * time.Second)
			scene.WantUnwell(s, "rights/deployments.apps: may not create deployments.apps (handler foos/child)")
		}},
		"one for Events as well": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("chatter", scene.ReportsEvents) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Forbid("create", eventsOf)
				s.Advance(time.Hour)
				scene.WantWell(s)
				s.Create(scene.Web)
				s.Advance(10 * time.Second)
				scene.WantUnwell(s, "may not create events.events.k8s.io")
			},
		},
		"one that is given wakes who was refused, and who succeeds ends what is said": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", scene.Deployments)
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			s.Allow("create", scene.Deployments)
			s.Advance(33 * time.Second)
			if s.Get(scene.Deployments, "default", "web") == nil {
				s.T.Error("there is no child")
			}
			scene.WantWell(s)
		}},
		"an account without a name is left out": {Operator: declares, Play: func(s *scene.Stage) {
			s.Forbid("create", scene.Deployments)
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Config.Wrap(refusesIntroductions) })
			scene.WantUnwell(s, "may not create deployments.apps (handler foos/child)")
			if said := scene.ReadyMessages(s); strings.Contains(said, "account") {
				s.T.Errorf("it is said that %s", said)
			}
		}},
	})
}

// TestRightsAreReviewedWithFewRequests: questions cost the API server something.
func TestRightsAreReviewedWithFewRequests(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"nothing is asked while nothing changes": {Operator: declares, Play: func(s *scene.Stage) {
			var asked questions
			s.Process = s.Start(s.Operator, asked.count)
			if n := asked.take(); n == 0 || n > 16 {
				s.T.Errorf("%d questions at the start", n)
			}
			s.Create(scene.Web)
			s.Advance(24 * time.Hour)
			if n := asked.take(); n > 0 {
				s.T.Errorf("%d questions in a day", n)
			}
		}},
		"one that is missing costs a question each five minutes": {Operator: declares, Play: func(s *scene.Stage) {
			var asked questions
			s.Forbid("create", scene.Deployments)
			s.Process = s.Start(s.Operator, asked.count)
			s.Advance(time.Hour)
			asked.take()
			s.Advance(time.Hour)
			if n := asked.take(); n < 10 || n > 16 {
				s.T.Errorf("%d questions in an hour", n)
			}
		}},
		"a thousand refusals cost a few questions": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("child", keepsDeployment, dsl.Retries(0), dsl.Needs("get, create", "deployments.apps"))
			}, Play: func(s *scene.Stage) {
				var asked questions
				s.Process = s.Start(s.Operator, asked.count)
				s.Advance(time.Minute)
				s.Forbid("create", scene.Deployments)
				asked.take()
				for i := range 300 {
					s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}}`, i))
				}
				s.Advance(10 * time.Second)
				if n := asked.take(); n < 1 || n > 6 {
					s.T.Errorf("%d questions", n)
				}
			},
		},
		"rights in each namespace are as good as rights in all": {Operator: declares, Play: func(s *scene.Stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 5)
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
			s.Forbid("create", scene.Deployments, "other")
			s.Process = s.Start(s.Operator, asked.count)
			scene.WantWell(s)
			asked.take()
			s.Advance(time.Hour)
			if n := asked.take(); n > 0 {
				s.T.Errorf("%d questions in an hour about rights that are there", n)
			}
		}},
		"of sixty namespaces ten are asked for": {Operator: declares, Play: func(s *scene.Stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 60)
			s.Forbid("create", scene.Deployments, "team-0", "team-1")
			s.Process = s.Start(s.Operator, asked.count)
			scene.WantUnwell(s, "rights/deployments.apps: may not create deployments.apps in namespace team-0, team-1 (10 of 60 were asked for) (handler foos/child); account operator")
			if n := asked.take(); n > 60*2+15+10 { // the feed asks in each
				s.T.Errorf("%d questions at the start", n)
			}
		}},
		"a namespace that joins the scope is asked for": {Operator: declares, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 2)
			s.Forbid("create", scene.Deployments, "team-2")
			s.Launch()
			scene.WantWell(s)
			s.Create(team(2))
			s.Advance(10 * time.Second)
			scene.WantUnwell(s, "rights/deployments.apps: may not create deployments.apps in namespace team-2 (handler foos/child)")
		}},
		"namespaces with names are asked for one by one where not all are allowed": {Operator: declares, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-0", "team-1"}
			createTeams(s, 2)
			s.Forbid("create", scene.Deployments, "team-1")
			s.Launch()
			scene.WantUnwell(s, "may not create deployments.apps in namespace team-1 (handler foos/child)")
		}},
	})
}
