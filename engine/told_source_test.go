// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
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
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// TestASourceThatFailsIsSaidOnce holds that a fault of a source is a line when it begins and one when it
// is over, with what lay between, however many objects and attempts there are.
func TestASourceThatFailsIsSaidOnce(t *testing.T) {
	const (
		begins = `"msg"="resource is degraded" "resource"="foos.v1.example.com" "handwerk.warning"=true "state"=`
		ends   = `"msg"="resource is watched again" "resource"="foos.v1.example.com" "lasted"="\d+m\d+s"`
	)
	away := apierrors.NewInternalError(fmt.Errorf("no space left"))
	tests := map[string]struct {
		fault func(s *stage) (mend func())
		want  []string
	}{
		"rights that are taken away": {func(s *stage) func() {
			s.Forbid("list", foos)
			s.Forbid("watch", foos)
			s.CutWatches(foos)
			return func() {
				s.Allow("list", foos)
				s.Allow("watch", foos)
			}
		}, []string{begins + `"forbidden" "reason"="list, watch"`, ends + ` "failed"=\d\d+$`}},
		"a watch that fails": {func(s *stage) func() {
			s.CutWatches(foos)
			end := s.FailWhile("watch", foos, away)
			return func() { end() }
		}, []string{begins + `"faulty" "reason"="watching foos.*no space left`, ends + ` "failed"=\d\d+$`}},
		"lists and watches that fail": {func(s *stage) func() {
			s.ExpireWatches(foos)
			lists, watches := s.FailWhile("list", foos, away), s.FailWhile("watch", foos, away)
			return func() { lists(); watches() }
		}, []string{begins + `"faulty" "reason"="(watching|listing) foos.*no space left`, ends + ` "failed"=\d\d+$`}},
		"a group of the API that does not answer": {func(s *stage) func() {
			s.CutWatches(foos)
			s.Break("example.com")
			return func() { s.Mend("example.com") }
		}, []string{
			`"msg"="requests fail; what needs them waits" "handwerk.warning"=true "to"="the API group example.com" "error"=`,
			`"msg"="requests get through again" "to"="the API group example.com" "failed"=\d\d+ "lasted"="\d+m\d+s"`,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, _ *journal) {
					foo.Resync = 10 * time.Second
					foo.OnReconcile("look", succeeds)
				},
				func(s *stage) {
					log := overheard(s, "")
					for _, name := range []string{"a", "b", "c", "d", "e"} {
						s.Create(strings.Replace(web, "name: web", "name: "+name, 1))
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

// TestAnOutageIsToldByNobodyElse holds that a server which hangs, so that watches come to no end and no
// request gets an answer, is a line when it begins and one when it is over.
func TestAnOutageIsToldByNobodyElse(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
		},
		func(s *stage) {
			log := overheard(s, "")
			s.Create(web)
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

// TestAServerThatComesBackIsNotComplainedOf holds that a server which refuses everything for a moment, as the
// real one does until it knows its roles, is no line more; what it still refuses later is.
func TestAServerThatComesBackIsNotComplainedOf(t *testing.T) {
	const (
		fails = `"msg"="requests fail; what needs them waits" "handwerk.warning"=true "to"="the API server"`
		again = `"msg"="requests get through again" "to"="the API server" "failed"=`
	)
	verbs, sources := []string{"list", "watch", "create", "patch"}, []string{foos, deployments}
	change := func(s *stage, rule func(verb, resource string, namespace ...string)) {
		for _, verb := range verbs {
			for _, source := range sources {
				rule(verb, source)
			}
		}
	}
	tests := map[string]struct {
		back func(s *stage)
		want []string
	}{
		"it refuses everything for a moment": {func(s *stage) {
			change(s, s.Forbid)
			s.Process.Restore()
			s.Advance(3 * time.Second)
			change(s, s.Allow)
		}, []string{fails, again}},
		"it refuses one thing from now on": {func(s *stage) {
			s.Forbid("watch", foos)
			s.Process.Restore()
		}, []string{fails, again, `"msg"="resource is degraded" "resource"="foos.v1.example.com" .*"state"="forbidden"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, _ *journal) {
					foo.Owns(deployments)
					foo.Resync = time.Second
					foo.OnReconcile("child", keepsChild)
				},
				func(s *stage) {
					log := overheard(s, "")
					s.Create(web)
					log()
					s.Process.Sever()
					s.Advance(2 * time.Minute)
					tt.back(s)
					s.Advance(10 * time.Minute)
					s.says(log, tt.want...)
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

// TestATokenThatIsNotAcceptedIsSaidOnce holds that a process whose token has expired says so in a line, however
// many resources there are.
func TestATokenThatIsNotAcceptedIsSaidOnce(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
		},
		func(s *stage) {
			log := overheard(s, "", func(e *engine.Settings) {
				e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return unknown{next, time.Now().Add(10 * time.Minute)}
				})
			})
			s.Advance(time.Hour)
			some := func() []string {
				return slices.DeleteFunc(log(), func(line string) bool { return strings.Contains(line, "operator starts") }) // at the same time
			}
			s.says(some, `"msg"="requests fail; what needs them waits" .*401 Unauthorized: .*expired`,
				`"msg"="requests get through again" "to"="the API server"`)
		},
	})
}

// TestAResourceThatComesBackIsToldOnce holds that a CRD that goes and returns is a line each, also where its
// objects cannot be listed yet when discovery has it.
func TestAResourceThatComesBackIsToldOnce(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("look", succeeds) },
		func(s *stage) {
			log := overheard(s, "")
			s.Create(web)
			log()
			s.Withdraw(foos)
			s.Advance(time.Minute)
			s.FailNext("list", foos, apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "", 0, false))
			s.FailNext("watch", foos, apierrors.NewGenericServerResponse(404, "watch", schema.GroupResource{}, "", "", 0, false))
			s.Restore(foos)
			s.Advance(10 * time.Minute)
			s.says(log, `"msg"="resource is degraded" .*"state"="not served"`, `"msg"="resource is watched again"`)
		},
	})
}

// TestACRDThatComesIsNoSecondWarning holds that a resource which is not served yet when its CRD is there already is not
// told of once more.
func TestACRDThatComesIsNoSecondWarning(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("look", succeeds) },
		func(s *stage) {
			s.Withdraw(foos)
			crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
			comes := s.FailWhile("get", crdsResource, apierrors.NewNotFound(crds, "foos.example.com"))
			log := overheard(s, "resource is")
			s.Advance(time.Minute)
			ill(s, "is its CRD installed?")
			comes()
			s.Advance(time.Minute)
			ill(s, "not served: its CRD is there, and the API server does not serve it yet")
			s.Restore(foos)
			s.Advance(time.Minute)
			well(s)
			s.says(log, `"msg"="resource is degraded" .*is its CRD installed\?`, `"msg"="resource is watched again"`)
		},
	})
}

// undecided is a server of which nobody learns what it serves.
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
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
		},
		func(s *stage) {
			log := overheard(s, "", func(e *engine.Settings) {
				e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return undecided{next} })
			})
			s.Advance(time.Second)
			if err := s.Process.Stop(); err != nil {
				t.Error(err)
			}
			s.says(log, "operator starts", "operator stopped")
		},
	})
}

// TestARightThatIsMissingIsSaidOnce holds that a right which is taken away is a line when it is missed and one
// when it is there again, however many objects and Events there are. The request that found it out has one, too.
func TestARightThatIsMissingIsSaidOnce(t *testing.T) {
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
			[]string{"a", "b", "c", "d", "e"}, []string{"list", "watch"}, deployments,
			[]string{`"msg"="resource is degraded" .*"child"="deployments.v1.apps" .*"state"="forbidden"`, `"msg"="resource is watched again"`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, _ *journal) {
					foo.Owns(deployments)
					foo.Resync = 7 * time.Minute
					foo.OnReconcile("report", func(_ ctx, r *dsl.Request) error {
						_, err := r.Children.List(deployments)
						if err == nil {
							r.Events.Event(dsl.Normal, fmt.Sprint("Seen", time.Now().Unix()), "again")
						}
						return err
					})
				},
				func(s *stage) {
					log := overheard(s, "")
					for _, name := range tt.objects {
						s.Create(strings.Replace(web, "name: web", "name: "+name, 1))
					}
					s.Advance(time.Minute)
					log()
					for _, verb := range tt.verbs {
						s.Forbid(verb, tt.resource)
					}
					s.CutWatches(deployments)
					s.Advance(time.Hour)
					for _, verb := range tt.verbs {
						s.Allow(verb, tt.resource)
					}
					s.Advance(time.Hour)
					s.says(log, tt.want...)
				},
			})
		})
	}
}

// TestFeedsAreInTheMetrics holds that children which cannot be watched are seen where nobody reads the log.
func TestFeedsAreInTheMetrics(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
		},
		func(s *stage) {
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
			s.Forbid("list", deployments)
			s.Forbid("watch", deployments)
			s.CutWatches(deployments)
			s.Advance(time.Minute)
			up("0")
		},
	})
}
