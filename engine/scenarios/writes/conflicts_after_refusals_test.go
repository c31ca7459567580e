// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"net/http"
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

// TestWhatSomebodyWritesBeforeAPatchSentAloneStays is law 1 for what is sent of one handler alone, since the server refused
// something.
func TestWhatSomebodyWritesBeforeAPatchSentAloneStays(t *testing.T) {
	var s *scene.Stage
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("one", j.Note("one", func(_ context.Context, r *dsl.Request) error { scene.DefaultColor(r); return nil }), dsl.Field("spec.size"))
			foo.OnReconcile("bad", func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.bad", true); return nil }, dsl.Retries(0))
		},
		Play: func(on *scene.Stage) {
			s = on
			s.Refuse(scene.Foos, refusesBad)
			s.Process = s.Start(s.Operator, func(e *engine.Settings) {
				e.Config.Wrap(afterFirst(http.StatusUnprocessableEntity, func() { s.Update(scene.Foos, "default", "web", scene.SetField("green", "spec", "color")) }))
			})
			s.Create(scene.WebWithoutColor)
			s.Advance(3 * time.Hour)
			s.WantField("spec.color", "green")
		},
	})
}

// refusesBad refuses objects with a field.
func refusesBad(o *unstructured.Unstructured) error {
	if scene.ValueAt(o, "spec.bad") != nil {
		return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
	}
	return nil
}
