// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
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
	made := func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) }
	leaves := func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left")) }
	marked := func(s *stage) {
		s.t.Helper()
		s.Advance(time.Minute)
		if s.web().GetAnnotations()[state] == "" {
			s.t.Error("the object is not marked as handled")
		}
	}
	scenarios(t, map[string]scenario{
		"a write to an object that is there is tried again": {made, func(s *stage) {
			s.Launch()
			s.FailNext("patch", foos, fooGone(), fooGone())
			s.Create(web)
			marked(s)
			s.Called("made create") // it wanted nothing of the object
		}},
		"so is one that is answered by a server that does not serve the resource": {made, func(s *stage) {
			s.Launch()
			s.FailNext("patch", foos, pageNotFound())
			s.Create(web)
			marked(s)
			s.Called("made create")
		}},
		"and one of which nothing can be read either": {made, func(s *stage) {
			s.Launch()
			s.FailNext("patch", foos, fooGone())
			s.FailNext("get", foos, pageNotFound())
			s.Create(web)
			marked(s)
			s.Called("made create")
		}},
		"a status": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("report", j.Note("report", reports)) },
			func(s *stage) {
				s.Launch()
				s.FailNext("patch", foos+"/status", fooGone())
				s.Create(web)
				s.Advance(time.Minute)
				s.Called("report create", "report create")
				if s.web().Object["status"] == nil {
					s.t.Error("the status was dropped")
				}
			},
		},
		"a finalizer is added before the first side effect, or there is none": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("sync", j.Note("sync"))
				leaves(foo, j)
			}, func(s *stage) {
				s.Launch()
				s.FailNext("patch", foos, fooGone())
				s.Create(web)
				s.Advance(time.Minute)
				s.Called("sync create")
				if len(s.web().GetFinalizers()) != 1 {
					s.t.Error("there is no finalizer")
				}
			},
		},
		"a finalizer is taken off": {leaves, func(s *stage) {
			s.begin()
			s.FailNext("patch", foos, fooGone())
			s.remove()
			s.Advance(time.Minute)
			s.gone()
		}},
		"an object that is gone is not written to again": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("report", j.Note("report", func(ctx context.Context, r *dsl.Request) error {
					if err := r.Client.Delete(ctx, foos, "default", "web", ""); err != nil {
						return err
					}
					return reports(ctx, r)
				}))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("report create")
				s.Wrote("delete foos default/web", "patch foos/status default/web: 404")
			},
		},
		"an object that is read live is not gone because its resource is not served for a moment": {
			func(foo *dsl.Resource, j *journal) {
				foo.Cache = dsl.CacheLive
				foo.OnCreate("made", j.Note("made"))
				foo.OnUpdate("changed", j.Note("changed"))
			}, func(s *stage) {
				s.begin()
				s.FailNext("get", foos, pageNotFound())
				s.size(2)
				s.Advance(time.Minute)
				s.Called("changed update")
			},
		},
	})
}
