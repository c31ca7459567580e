// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// reportsAbout reports an Event about an object.
func reportsAbout(object any) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		return r.Events.EventAbout(object, dsl.Warning, "Crowded", "%d tenants", 3)
	}
}

// TestAHandlerReportsAnEventAboutAnotherObject holds that an Event is about the object that a handler names, in the namespace of that
// object, also if the handler runs for no object.
func TestAHandlerReportsAnEventAboutAnotherObject(t *testing.T) {
	quota := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "elsewhere", "name": "quota"}}
	crowded := "elsewhere ConfigMap quota: Warning Crowded count: 3 tenants"
	tests := map[string]struct {
		define func(foo *dsl.Resource)
		want   []string
	}{
		"an object in another namespace": {func(foo *dsl.Resource) { foo.OnReconcile("count", reportsAbout(quota)) }, []string{crowded}},
		"an object, by a schedule": {
			func(foo *dsl.Resource) {
				foo.Schedule(scene.Hourly(), "count", reportsAbout(quota))
			},
			[]string{crowded},
		},
		"a value that is no object fails the handler for good": {
			func(foo *dsl.Resource) { foo.OnReconcile("count", reportsAbout("quota")) },
			[]string{"default Foo web: Warning HandlerFailed count: Handler count failed for good after 1 attempt: reporting event Crowded: reading object: it is not an object in JSON"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) { tt.define(foo) },
				Play: func(s *scene.Stage) {
					s.CreateElsewhere()
					s.Launch()
					s.Create(scene.Web)
					s.Advance(time.Hour)
					s.Settle()
					var got []string
					for _, e := range s.Events() {
						got = append(got, e.Namespace+" "+e.Kind+" "+e.Name+": "+e.Type+" "+e.Reason+" "+e.Action+": "+e.Note)
					}
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Errorf("Events (-want +got):\n%s", diff)
					}
				},
			})
		})
	}
}
