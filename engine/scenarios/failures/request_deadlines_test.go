// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// late65 is a moment after the deadline of requests, when what failed then was tried again.
const late65 = 67 * time.Second

// TestRequestsHaveADeadline is law 9: an answer that never comes costs a minute, and not the worker
// and its object.
func TestRequestsHaveADeadline(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a write whose answer never comes ends, and the object goes on from what the cluster has": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.OnUpdate("changed", j.Note("changed"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.DelayNext("patch", scene.Foos, time.Hour)
				s.Create(scene.Web)
				s.Called("made create")
				s.Resize(2)
				s.Advance(time.Minute)
				s.Called()
				s.Advance(7 * time.Second)
				s.Called("changed update")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
		"so does the write of a status, which is tried again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("report", j.Note("report", scene.Reports))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.DelayNext("patch", scene.Foos+"/status", time.Hour)
				s.Create(scene.Web)
				s.Called("report create")
				s.Advance(late65)
				s.Called("report create")
			},
		},
		"a handler gets the error of its own request, and is tried again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("write", j.Note("write", func(ctx context.Context, r *dsl.Request) error {
					err := scene.WritesElsewhere(ctx, r)
					if err != nil && !strings.HasSuffix(err.Error(), "no answer within 65s") {
						j.Add(err.Error())
					}
					return err
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.DelayNext("patch", "configmaps.v1", time.Hour)
				s.Create(scene.Web)
				s.Advance(64 * time.Second)
				s.Called("write create")
				s.Advance(time.Minute)
				s.Called("write create 2")
			},
		},
		"an object that is read live is read again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Cache = dsl.CacheLive
				foo.OnReconcile("sync", j.Note("sync"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.DelayNext("get", scene.Foos, time.Hour)
				s.Create(scene.Web)
				s.Called()
				s.Advance(late65)
				s.Called("sync create")
			},
		},
		"a watch whose answer never begins is opened again": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			s.DelayNext("watch", scene.Foos, 24*time.Hour)
			s.CutWatches(scene.Foos)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called()
			s.Advance(10 * time.Second)
			s.Called("sync update")
			scene.WantWell(s)
		}},
		"so is the first listing, where it is streamed": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			s.DelayNext("watch", scene.Foos, 24*time.Hour)
			s.Launch()
			s.Advance(time.Minute)
			s.Called()
			s.Advance(10 * time.Second)
			s.Called("sync resume")
			scene.WantWell(s)
		}},
	})
}

// prefixed is the API behind a path, as Rancher and kubectl proxy --api-prefix serve it.
type prefixed struct {
	prefix string
	next   http.RoundTripper
}

func (p prefixed) RoundTrip(request *http.Request) (*http.Response, error) {
	path, found := strings.CutPrefix(request.URL.Path, p.prefix)
	if !found {
		return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody, Request: request}, nil
	}
	request = request.Clone(request.Context())
	request.URL.Path = path
	return p.next.RoundTrip(request)
}

// TestTheURLOfAServerMayHaveAPath holds that a server's URL may have a path: a process that stands by gets ready and
// takes over.
func TestTheURLOfAServerMayHaveAPath(t *testing.T) {
	behind := func(e *engine.Settings) {
		const prefix = "/k8s/clusters/c-1"
		e.Config.Host += prefix + "/"
		e.Config.Transport = prefixed{prefix, e.Config.Transport}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"who stands by is ready, and takes over": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first := s.Start(scene.Replica(&s.Journal, "first", dsl.LeaderLease), behind)
			s.Advance(time.Second)
			s.Process = s.Start(scene.Replica(&s.Journal, "second", dsl.LeaderLease), behind)
			s.Advance(time.Second)
			s.Create(scene.Web)
			s.Called("first create")
			for _, c := range s.Process.Engine().Ready() {
				if c.State != 0 || c.Name == "started" && !strings.Contains(c.Message, "standing by") {
					s.T.Errorf("the standby says %+v", c)
				}
			}
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			scene.AwaitTakeover(s)
		}},
	})
}
