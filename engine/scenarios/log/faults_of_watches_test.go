// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestASourceThatFailsIsLoggedOnce holds that a fault of a source is a line when it begins and one when it
// is over, with what lay between, however many objects and attempts there are.
func TestASourceThatFailsIsLoggedOnce(t *testing.T) {
	const (
		begins = `"msg"="resource is degraded" "resource"="foos.v1.example.com" "handwerk.warning"=true "state"=`
		ends   = `"msg"="resource is watched again" "resource"="foos.v1.example.com" "lasted"="\d+m\d+s"`
	)
	away := apierrors.NewInternalError(fmt.Errorf("no space left"))
	tests := map[string]struct {
		fault func(s *scene.Stage) (mend func())
		want  []string
	}{
		"rights that are taken away": {func(s *scene.Stage) func() {
			s.Forbid("list", scene.Foos)
			s.Forbid("watch", scene.Foos)
			s.CutWatches(scene.Foos)
			return func() {
				s.Allow("list", scene.Foos)
				s.Allow("watch", scene.Foos)
			}
		}, []string{begins + `"forbidden" "reason"="list, watch"`, ends + ` "failed"=\d\d+$`}},
		"a watch that fails": {func(s *scene.Stage) func() {
			s.CutWatches(scene.Foos)
			end := s.FailWhile("watch", scene.Foos, away)
			return func() { end() }
		}, []string{begins + `"faulty" "reason"="watching foos.*no space left`, ends + ` "failed"=\d\d+$`}},
		"lists and watches that fail": {func(s *scene.Stage) func() {
			s.ExpireWatches(scene.Foos)
			lists, watches := s.FailWhile("list", scene.Foos, away), s.FailWhile("watch", scene.Foos, away)
			return func() { lists(); watches() }
		}, []string{begins + `"faulty" "reason"="(watching|listing) foos.*no space left`, ends + ` "failed"=\d\d+$`}},
		"a group of the API that does not answer": {func(s *scene.Stage) func() {
			s.CutWatches(scene.Foos)
			s.Break("example.com")
			return func() { s.Mend("example.com") }
		}, []string{
			`"msg"="requests fail; what needs them waits" "handwerk.warning"=true "to"="the API group example.com" "error"=`,
			`"msg"="requests get through again" "to"="the API group example.com" "failed"=\d\d+ "lasted"="\d+m\d+s"`,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.Resync = 10 * time.Second
					foo.OnReconcile("look", scene.Succeeds)
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "")
					for _, name := range []string{"a", "b", "c", "d", "e"} {
						s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
					}
					log()
					mend := tt.fault(s)
					s.Advance(10 * time.Minute)
					mend()
					s.Advance(10 * time.Minute)
					got := log()
					for i := range max(len(got), len(tt.want)) {
						if i >= len(got) || i >= len(tt.want) || !regexp.MustCompile(tt.want[i]).MatchString(got[i]) {
							t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
							break
						}
					}
				},
			})
		})
	}
}

// TestAnOutageIsNotLoggedByEachWatch holds that a server which hangs, so that watches come to no end and no
// request gets an answer, is a line when it begins and one when it is over.
func TestAnOutageIsNotLoggedByEachWatch(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
		},
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "")
			s.Create(scene.Web)
			log()
			s.Process.Sever()
			s.Advance(10 * time.Minute)
			s.Process.Restore()
			s.Advance(10 * time.Minute)
			got := log()
			want := []string{
				`"msg"="requests fail; what needs them waits" "handwerk.warning"=true "to"="the API server"`,
				`"msg"="requests get through again" "to"="the API server" "failed"=\d\d+ "lasted"="1\dm\d+s"`,
			}
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || !regexp.MustCompile(want[i]).MatchString(got[i]) {
					t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
					break
				}
			}
		},
	})
}

// TestAServerThatComesBackIsNotLoggedAsAFault holds that a server which refuses everything for a moment, as the
// real one does until it knows its roles, is no line more; what it still refuses later is.
func TestAServerThatComesBackIsNotLoggedAsAFault(t *testing.T) {
	const (
		fails = `"msg"="requests fail; what needs them waits" "handwerk.warning"=true "to"="the API server"`
		again = `"msg"="requests get through again" "to"="the API server" "failed"=`
	)
	verbs, sources := []string{"list", "watch", "create", "patch"}, []string{scene.Foos, scene.Deployments}
	change := func(s *scene.Stage, rule func(verb, resource string, namespace ...string)) {
		for _, verb := range verbs {
			for _, source := range sources {
				rule(verb, source)
			}
		}
	}
	tests := map[string]struct {
		back func(s *scene.Stage)
		want []string
	}{
		"it refuses everything for a moment": {func(s *scene.Stage) {
			change(s, s.Forbid)
			s.Process.Restore()
			s.Advance(3 * time.Second)
			change(s, s.Allow)
		}, []string{fails, again}},
		"it refuses one thing from now on": {func(s *scene.Stage) {
			s.Forbid("watch", scene.Foos)
			s.Process.Restore()
		}, []string{fails, again, `"msg"="resource is degraded" "resource"="foos.v1.example.com" .*"state"="forbidden"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.Owns(scene.Deployments)
					foo.Resync = time.Second
					foo.OnReconcile("child", scene.KeepsDeployment)
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "")
					s.Create(scene.Web)
					log()
					s.Process.Sever()
					s.Advance(2 * time.Minute)
					tt.back(s)
					s.Advance(10 * time.Minute)
					s.WantLines(log, tt.want...)
				},
			})
		})
	}
}

// unknown is a server that does not accept the token.
type unknown struct {
	next  http.RoundTripper
	until time.Time
}

func (u unknown) RoundTrip(request *http.Request) (*http.Response, error) {
	if time.Now().After(u.until) {
		return u.next.RoundTrip(request)
	}
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Header: http.Header{}, Request: request}, nil
}

// TestARefusedTokenIsLoggedOnce holds that a process whose token has expired says so in a line, however
// many resources there are.
func TestARefusedTokenIsLoggedOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
		},
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "", func(e *engine.Settings) {
				e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return unknown{next, time.Now().Add(10 * time.Minute)}
				})
			})
			s.Advance(time.Hour)
			some := func() []string {
				return slices.DeleteFunc(log(), func(line string) bool { return strings.Contains(line, "operator starts") }) // at the same time
			}
			s.WantLines(some, `"msg"="requests fail; what needs them waits" .*401 Unauthorized: .*expired`,
				`"msg"="requests get through again" "to"="the API server"`)
		},
	})
}

// TestAResourceThatComesBackIsLoggedOnce holds that a CRD that goes and returns is a line each, also where its
// objects cannot be listed yet when discovery has it.
func TestAResourceThatComesBackIsLoggedOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("look", scene.Succeeds) },
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "")
			s.Create(scene.Web)
			log()
			s.Withdraw(scene.Foos)
			s.Advance(time.Minute)
			s.FailNext("list", scene.Foos, apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "", 0, false))
			s.FailNext("watch", scene.Foos, apierrors.NewGenericServerResponse(404, "watch", schema.GroupResource{}, "", "", 0, false))
			s.Restore(scene.Foos)
			s.Advance(10 * time.Minute)
			s.WantLines(log, `"msg"="resource is degraded" .*"state"="not served"`, `"msg"="resource is watched again"`)
		},
	})
}

// TestACRDThatComesIsNoSecondWarning holds that a resource which is not served yet when its CRD is there already is not
// logged once more.
func TestACRDThatComesIsNoSecondWarning(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("look", scene.Succeeds) },
		Play: func(s *scene.Stage) {
			s.Withdraw(scene.Foos)
			crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
			comes := s.FailWhile("get", scene.CRDs, apierrors.NewNotFound(crds, "foos.example.com"))
			log := scene.LaunchWithLog(s, "resource is")
			s.Advance(time.Minute)
			scene.WantUnwell(s, "is its CRD installed?")
			comes()
			s.Advance(time.Minute)
			scene.WantUnwell(s, "not served: its CRD is there, and the API server does not serve it yet")
			s.Restore(scene.Foos)
			s.Advance(time.Minute)
			scene.WantWell(s)
			s.WantLines(log, `"msg"="resource is degraded" .*is its CRD installed\?`, `"msg"="resource is watched again"`)
		},
	})
}

// undecided is a server whose discovery fails.
type undecided struct{ next http.RoundTripper }

func (u undecided) RoundTrip(request *http.Request) (*http.Response, error) {
	if path := request.URL.Path; path != "/api" && path != "/apis" {
		return u.next.RoundTrip(request)
	}
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// TestAStopIsNoFault holds that who is stopped while it asks what is served does not complain of it.
func TestAStopIsNoFault(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
		},
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "", func(e *engine.Settings) {
				e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return undecided{next} })
			})
			s.Advance(time.Second)
			if err := s.Process.Stop(); err != nil {
				t.Error(err)
			}
			s.WantLines(log, "operator starts", "operator stopped")
		},
	})
}

// TestAMissingRightIsLoggedOnce holds that a right which is taken away is a line when it is missed and one
// when it is there again, however many objects and Events there are. The request that found it out has one, too.
func TestAMissingRightIsLoggedOnce(t *testing.T) {
	tests := map[string]struct {
		objects  []string
		verbs    []string
		resource string
		want     []string
	}{
		"to send Events": {
			[]string{"a"}, []string{"create"}, "events.v1.events.k8s.io",
			[]string{"Server rejected event", `"msg"="right is missing" .*create events.events.k8s.io`, `"msg"="missing right was granted`},
		},
		"to watch children": {
			[]string{"a", "b", "c", "d", "e"}, []string{"list", "watch"}, scene.Deployments,
			[]string{`"msg"="resource is degraded" .*"child"="deployments.v1.apps" .*"state"="forbidden"`, `"msg"="resource is watched again"`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.Owns(scene.Deployments)
					foo.Resync = 7 * time.Minute
					foo.OnReconcile("report", func(_ context.Context, r *dsl.Request) error {
						_, err := r.Children.List(scene.Deployments)
						if err == nil {
							r.Events.Event(dsl.Normal, fmt.Sprint("Seen", time.Now().Unix()), "again")
						}
						return err
					})
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "")
					for _, name := range tt.objects {
						s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
					}
					s.Advance(time.Minute)
					log()
					for _, verb := range tt.verbs {
						s.Forbid(verb, tt.resource)
					}
					s.CutWatches(scene.Deployments)
					s.Advance(time.Hour)
					for _, verb := range tt.verbs {
						s.Allow(verb, tt.resource)
					}
					s.Advance(time.Hour)
					s.WantLines(log, tt.want...)
				},
			})
		})
	}
}

// TestFeedsAreInTheMetrics holds that children which cannot be watched are seen without the log.
func TestFeedsAreInTheMetrics(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
		},
		Play: func(s *scene.Stage) {
			metrics := ops.NewMetrics()
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Settle()
			up := func(want string) {
				t.Helper()
				const head = "# HELP handwerk_feed_up 1 while children or related objects of the resource are watched, 0 while they are not or not in every namespace; feed is as in /readyz: child/ or related/ and the name.\n# TYPE handwerk_feed_up gauge\n"
				sample := `handwerk_feed_up{feed="child/deployments.v1.apps",resource="foos.v1.example.com"} ` + want + "\n"
				if err := testutil.GatherAndCompare(metrics.Registry(), strings.NewReader(head+sample), "handwerk_feed_up"); err != nil {
					t.Error(err)
				}
			}
			up("1")
			s.Forbid("list", scene.Deployments)
			s.Forbid("watch", scene.Deployments)
			s.CutWatches(scene.Deployments)
			s.Advance(time.Minute)
			up("0")
		},
	})
}
