// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package outages_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// fooGone is what a server says that has no Foo named web.
func fooGone() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web")
}

// pageNotFound is what client-go makes of "404 page not found", which a server says of what it does not serve:
// the details are the client's.
func pageNotFound() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", schema.GroupResource{Group: "example.com", Resource: "foos"},
		"web", "404 page not found", 0, true)
}

// TestNotFoundIsConfirmed is law 1: one server's 404 drops no write of an object that is there.
func TestNotFoundIsConfirmed(t *testing.T) {
	made := func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) }
	leaves := func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left")) }
	marked := func(s *scene.Stage) {
		s.T.Helper()
		s.Advance(time.Minute)
		if s.Web().GetAnnotations()[scene.StateAnnotation] == "" {
			s.T.Error("the object is not marked as handled")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a write to an object that is there is tried again": {Operator: made, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("patch", scene.Foos, fooGone(), fooGone())
			s.Create(scene.Web)
			marked(s)
			s.Called("made create") // it wanted nothing of the object
		}},
		"so is one that is answered by a server that does not serve the resource": {Operator: made, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("patch", scene.Foos, pageNotFound())
			s.Create(scene.Web)
			marked(s)
			s.Called("made create")
		}},
		"and one that cannot be read either": {Operator: made, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("patch", scene.Foos, fooGone())
			s.FailNext("get", scene.Foos, pageNotFound())
			s.Create(scene.Web)
			marked(s)
			s.Called("made create")
		}},
		"a status": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("report", j.Note("report", scene.Reports))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.FailNext("patch", scene.Foos+"/status", fooGone())
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("report create", "report create")
				if s.Web().Object["status"] == nil {
					s.T.Error("the status was dropped")
				}
			},
		},
		"a finalizer is added before the first side effect, or there is none": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("sync", j.Note("sync"))
				leaves(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.FailNext("patch", scene.Foos, fooGone())
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("sync create")
				if len(s.Web().GetFinalizers()) != 1 {
					s.T.Error("there is no finalizer")
				}
			},
		},
		"a finalizer is taken off": {Operator: leaves, Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.Foos, fooGone())
			s.Remove()
			s.Advance(time.Minute)
			s.WantGone()
		}},
		"an object that is gone is not written to again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("report", j.Note("report", func(ctx context.Context, r *dsl.Request) error {
					if err := r.Client.Delete(ctx, scene.Foos, "default", "web", ""); err != nil {
						return err
					}
					return scene.Reports(ctx, r)
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("report create")
				s.Wrote("delete foos default/web", "patch foos/status default/web: 404")
			},
		},
		"an object that is read live is not gone because its resource is not served for a moment": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Cache = dsl.CacheLive
				foo.OnCreate("made", j.Note("made"))
				foo.OnUpdate("changed", j.Note("changed"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.FailNext("get", scene.Foos, pageNotFound())
				s.Resize(2)
				s.Advance(time.Minute)
				s.Called("changed update")
			},
		},
	})
}
