// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWhatOneHandlerRemovesIsNotThereWhenTheNextSetsSomethingBelowIt holds that for every part of an object, also
// where somebody else writes to it before the reconcile does.
func TestWhatOneHandlerRemovesIsNotThereWhenTheNextSetsSomethingBelowIt(t *testing.T) {
	const old = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {old: x}, annotations: {old: x}},
		spec: {size: 1, config: {old: x, deep: {old: x}}}, status: {phases: {old: x}}}`
	tests := map[string]struct {
		removes, sets func(*dsl.Patch)
		sent, path    string
		want          any
	}{
		"in spec": {
			func(p *dsl.Patch) { p.Remove("spec.config") }, func(p *dsl.Patch) { p.Set("spec.config.deep.new", "x") },
			scene.Foos, "spec.config", map[string]any{"deep": map[string]any{"new": "x"}},
		},
		"in spec, in place of a value": {
			func(p *dsl.Patch) { p.Set("spec.config", "x") }, func(p *dsl.Patch) { p.Set("spec.config.new", "x") },
			scene.Foos, "spec.config", map[string]any{"new": "x"},
		},
		"in status": {
			func(p *dsl.Patch) { p.RemoveStatus("phases") }, func(p *dsl.Patch) { p.SetStatus("phases.new", "x") },
			scene.Foos + "/status", "status.phases", map[string]any{"new": "x"},
		},
		"in labels": {
			func(p *dsl.Patch) { p.Remove("metadata.labels") }, func(p *dsl.Patch) { p.Label("new", "x") },
			scene.Foos, "metadata.labels", map[string]any{"new": "x"},
		},
		"in annotations": {
			func(p *dsl.Patch) { p.Remove("metadata.annotations") }, func(p *dsl.Patch) { p.Annotate("new", "x") },
			scene.Foos, "metadata.annotations", map[string]any{"new": "x"},
		},
		"in annotations, where nothing is set": {
			func(p *dsl.Patch) { p.Remove("metadata.annotations") }, func(*dsl.Patch) {},
			scene.Foos, "metadata.annotations", map[string]any{},
		},
	}
	for name, tt := range tests {
		for _, meanwhile := range []bool{false, true} {
			if meanwhile {
				name += ", and somebody else writes meanwhile"
			}
			t.Run(name, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnCreate("first", j.Note("first", func(_ context.Context, r *dsl.Request) error { tt.removes(r.Patch); return nil }))
					foo.OnCreate("second", j.Note("second", func(_ context.Context, r *dsl.Request) error { tt.sets(r.Patch); return nil }))
				}, Play: func(s *scene.Stage) {
					s.Create(old)
					if meanwhile {
						s.FailNext("patch", tt.sent, apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("modified")))
					}
					s.Launch()
					s.Called("first create", "second create")
					if diff := cmp.Diff(tt.want, others(s.Web(), tt.path)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", tt.path, diff)
					}
					s.Forget()
					s.Advance(time.Hour)
					s.Called()
					s.Wrote()
				}})
			})
		}
	}
}

// others is what is at a path, without the engine's own.
func others(o *unstructured.Unstructured, path string) any {
	at, _ := dsl.MustParsePath(path).In(o.Object)
	out := map[string]any{}
	for key, value := range at.(map[string]any) {
		if !strings.HasPrefix(key, "op.") {
			out[key] = value
		}
	}
	return out
}
