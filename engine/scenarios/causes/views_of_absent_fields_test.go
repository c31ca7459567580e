// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnAbsentFieldThatAnExpressionReadsIsInItsView holds that a handler whose expression comes upon something that is not there
// runs when that is so for another reason: what the expression makes of it may be another thing.
func TestAnAbsentFieldThatAnExpressionReadsIsInItsView(t *testing.T) {
	issuer := map[string]any{"issuer": "x"}
	for name, c := range map[string]struct {
		expression string
		// values are at a place one after the other.
		at     []string
		values []any
		want   any
	}{
		"has() of a label":            {`has(self.metadata.labels.tier) ? 'yes' : 'no'`, []string{"metadata", "labels", "other"}, []any{"x"}, "no"},
		"has() of an annotation":      {`has(self.metadata.annotations.tier) ? 'yes' : 'no'`, []string{"metadata", "annotations", "other"}, []any{"x"}, "no"},
		"has() of a field":            {`has(self.spec.tls.secret) ? 'yes' : 'no'`, []string{"spec", "tls"}, []any{issuer}, "no"},
		"has() of a field in status":  {`has(self.status.tls.secret) ? 'yes' : 'no'`, []string{"status", "tls"}, []any{issuer}, "no"},
		"an optional field":           {`self.spec.tls.?secret.orValue('none')`, []string{"spec", "tls"}, []any{issuer}, "none"},
		"an optional index":           {`self.spec.tls[?'secret'].orValue('none')`, []string{"spec", "tls"}, []any{issuer}, "none"},
		"a field that becomes null":   {`has(self.spec.tls) ? 'yes' : 'no'`, []string{"spec"}, []any{map[string]any{"tls": nil}}, "yes"},
		"a text where a map belonged": {`self.spec.tls.?secret.orValue('none')`, []string{"spec", "tls"}, []any{"x", issuer}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: a, retries: 0, set: {status: {seen: "${`+c.expression+`}"}}}]}`, func(s *scene.Stage) {
				s.Begin()
				for _, one := range c.values {
					s.Set(one, c.at...)
					s.Advance(time.Hour)
				}
				if got := scene.ValueAt(s.Web(), "status.seen"); got != c.want {
					t.Errorf("it is seen as %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestAMapAroundAFieldIsNotInTheViewOfTheField holds that a handler does not run for a map around a field which it
// reads, where it asks for that map, too.
func TestAMapAroundAFieldIsNotInTheViewOfTheField(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: a, set: {status: {
			seen: "${self.?spec.?tls.?secret.orValue('none')}", also: "${self.metadata.?annotations.?note.orValue('')}"}}},
		{id: stores, causes: [update], field: spec.size, log: {message: hello}}]}`, func(s *scene.Stage) {
		s.Begin()
		s.Resize(2)
		s.Called("stores update") // which is noted in an annotation
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			o.Object["spec"].(map[string]any)["tls"] = map[string]any{"issuer": "x"}
		})
		s.Advance(time.Hour)
		s.Called()
	})
}
