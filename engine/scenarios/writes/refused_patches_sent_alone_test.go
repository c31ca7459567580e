// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAPatchSentAloneOverwritesNothing is law 1 for what the engine sends of one handler alone, since the server refused
// something: what it made of an object that somebody has changed since is not written, and it runs again.
func TestAPatchSentAloneOverwritesNothing(t *testing.T) {
	// meanwhile has somebody set the size to 5 while a handler runs that sees 30.
	meanwhile := func(s **scene.Stage, then dsl.Func) dsl.Func {
		return func(ctx context.Context, r *dsl.Request) error {
			if scene.SizeOf(r.Object) == 30 && scene.SizeOf((*s).Web()) == 30 {
				(*s).Resize(5)
			}
			return then(ctx, r)
		}
	}
	var s *scene.Stage
	scene.PlayAll(t, map[string]scene.Scenario{
		"it was refused before, and the pass has read the object for another one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Keep = []dsl.Path{{"spec", "size"}, {"spec", "hosts"}}
				foo.OnReconcile("one", meanwhile(&s, wantsHost("one")), dsl.Field("spec.size"))
				foo.OnReconcile("two", j.Note("two", clamp), dsl.Field("spec.size"), dsl.WithBackoff(time.Hour, time.Hour))
			},
			Play: func(of *scene.Stage) {
				s = of
				end := s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
					if scene.SizeOf(o) == 10 {
						return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
					}
					return nil
				})
				s.Launch()
				s.Create(strings.Replace(shared, "size: 1", "size: 20", 1))
				s.Settle()
				end()
				s.Resize(30)
				s.Advance(3 * time.Hour)
				s.WantField("spec.size", int64(5))
				wantList(s, "theirs", "one")
			},
		},
		"another one is refused, and the first one meets a conflict": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.color", fmt.Sprint("red ", scene.ValueAt(r.Object, "metadata.labels.tier")))
					return nil
				}, dsl.Field("metadata.labels"))
				foo.OnReconcile("two", j.Note("two", clamp), dsl.Field("spec.size"))
				foo.OnReconcile("bad", func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.bad", true); return nil }, dsl.Retries(0))
			},
			Play: func(of *scene.Stage) {
				s = of
				s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
					if scene.ValueAt(o, "spec.bad") != nil {
						return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
					}
					return nil
				})
				s.Process = s.Start(s.Operator, func(e *engine.Settings) {
					e.Config.Wrap(afterFirst(http.StatusUnprocessableEntity, func() { s.Resize(5) }))
				})
				s.Settle()
				s.Create(strings.Replace(labelled, "size: 1", "size: 20", 1))
				s.Advance(3 * time.Hour)
				s.WantField("spec.size", int64(5))
				s.WantField("spec.color", "red gold")
			},
		},
	})
}

// afterFirst has something happen before the first answer with a code comes back.
func afterFirst(code int, happens func()) func(http.RoundTripper) http.RoundTripper {
	var done atomic.Bool
	return func(next http.RoundTripper) http.RoundTripper {
		return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && response.StatusCode == code && !done.Swap(true) {
				happens()
			}
			return response, err
		})
	}
}
