// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// TestWhatSomebodyWritesBeforeAWriteBySelfStays is law 1 for what is sent of one handler alone, since the server refused
// something.
func TestWhatSomebodyWritesBeforeAWriteBySelfStays(t *testing.T) {
	var s *stage
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("one", j.Note("one", func(_ ctx, r *dsl.Request) error { defaultColor(r); return nil }), dsl.Field("spec.size"))
			foo.OnReconcile("bad", func(_ ctx, r *dsl.Request) error { r.Patch.Set("spec.bad", true); return nil }, dsl.Retries(0))
		},
		func(on *stage) {
			s = on
			s.Refuse(foos, refusesBad)
			s.Process = s.Start(s.Operator, func(e *engine.Settings) {
				e.Config.Wrap(afterFirst(http.StatusUnprocessableEntity, func() { s.Update(foos, "default", "web", puts("green", "spec", "color")) }))
			})
			s.Create(colorless)
			s.Advance(3 * time.Hour)
			s.at("spec.color", "green")
		},
	})
}

// refusesBad refuses objects with a field.
func refusesBad(o *unstructured.Unstructured) error {
	if value(o, "spec.bad") != nil {
		return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
	}
	return nil
}
