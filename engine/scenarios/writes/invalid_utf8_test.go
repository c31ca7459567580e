// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestTextThatIsNotUTF8IsWrittenOnce is law 4 for texts that JSON changes, as a message that was cut in the middle of a
// letter: a new process does not write them again.
func TestTextThatIsNotUTF8IsWrittenOnce(t *testing.T) {
	const cut = "gr\xc3"
	wishes := map[string]func(r *dsl.Request){
		"a status":         func(r *dsl.Request) { r.Patch.SetStatus("text", cut) },
		"a text in a list": func(r *dsl.Request) { r.Patch.SetStatus("list", []any{map[string]any{"text": cut}}) },
		"a field":          func(r *dsl.Request) { r.Patch.Set("spec.text", cut) },
		"an annotation":    func(r *dsl.Request) { r.Patch.Annotate("example.com/text", cut) },
		"a label":          func(r *dsl.Request) { r.Patch.Label("text", cut) },
		"a map of its own": func(r *dsl.Request) { r.Patch.Status["map"] = map[string]any{"text": []any{cut}} },
		"a condition":      func(r *dsl.Request) { r.Patch.SetCondition("Ready", "True", "Done", cut) },
		"a result":         func(r *dsl.Request) { r.Result(cut) },
		"a transformation": func(r *dsl.Request) {
			r.Patch.Transform(func(o *unstructured.Unstructured) error {
				return unstructured.SetNestedField(o.Object, cut, "spec", "text")
			})
		},
	}
	for name, wish := range wishes {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnReconcile("one", j.Note("one", func(_ context.Context, r *dsl.Request) error { wish(r); return nil }))
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Settle()
					if len(s.Process.Writes()) != 1 {
						t.Error("it was not written once")
					}
					s.Process.Restart()
					s.Settle()
					s.Wrote()
				},
			})
		})
	}
}
