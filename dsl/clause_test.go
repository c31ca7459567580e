// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

func isLarge(s *dsl.Subject) (bool, error) {
	_, found, _ := unstructured.NestedInt64(s.Object.Object, "spec", "size")
	return found, nil
}

func isBroken(*dsl.Subject) (bool, error) { return true, errors.New("no answer") }

func panics(*dsl.Subject) (bool, error) { panic("at once") }

// TestPredicatesInGoAreNamed holds that of each predicate in Go one learns its name, its place and its answer.
func TestPredicatesInGoAreNamed(t *testing.T) {
	s := &dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{}}}
	tests := map[string]struct {
		handler func(h *dsl.Handler)
		want    []dsl.Clause
	}{
		"none":    {func(*dsl.Handler) {}, nil},
		"one":     {dsl.When(isLarge), []dsl.Clause{{Text: "dsl_test.isLarge"}}},
		"a field": {func(h *dsl.Handler) { h.When = isBroken }, []dsl.Clause{{Text: "dsl_test.isBroken", Error: "no answer"}}},
		"several, also after one that is false": {
			func(h *dsl.Handler) { dsl.When(isLarge)(h); dsl.When(isBroken)(h) },
			[]dsl.Clause{{Text: "dsl_test.isLarge"}, {Text: "dsl_test.isBroken", Error: "no answer"}},
		},
		"a field and an option": {
			func(h *dsl.Handler) { h.When = isLarge; dsl.When(isBroken)(h) },
			[]dsl.Clause{{Text: "dsl_test.isLarge"}, {Text: "dsl_test.isBroken", Error: "no answer"}},
		},
		"one that panics": {dsl.When(panics), []dsl.Clause{{Text: "dsl_test.panics", Error: "panic: at once"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var h dsl.Handler
			test.handler(&h)
			got := h.Explain(s)
			for i := range got {
				if !strings.HasPrefix(got[i].Place, "dsl/clause_test.go:") {
					t.Errorf("place %q", got[i].Place)
				}
				got[i].Place = ""
				got[i].Error, _, _ = strings.Cut(got[i].Error, "\n")
			}
			for i := range test.want {
				test.want[i].What = "when"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTheTimeOfAHandlerIsExplained holds that one learns of the time that an object gives, and whether it has come.
func TestTheTimeOfAHandlerIsExplained(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	secret := dsl.Secrets{Read: true, From: []string{"self"}}
	value := func(text string) []dsl.ClauseValue { return []dsl.ClauseValue{{Text: "the time", Value: text}} }
	tests := map[string]struct {
		at      time.Time
		err     error
		secrets dsl.Secrets
		want    dsl.Clause
	}{
		"it has come":         {at: noon, want: dsl.Clause{Holds: true, Values: value("2030-01-01T12:00:00Z")}},
		"it is to come":       {at: noon.Add(time.Hour), want: dsl.Clause{Values: value("2030-01-01T13:00:00Z")}},
		"there is none":       {want: dsl.Clause{Values: value(dsl.NotSet)}},
		"it is a Secret's":    {at: noon, secrets: secret, want: dsl.Clause{Holds: true, Values: value(dsl.Secret)}},
		"it is not known why": {err: errors.New("no answer"), want: dsl.Clause{Error: "no answer"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := dsl.Handler{Timing: &dsl.Timing{At: func(*dsl.Subject) (time.Time, error) { return tt.at, tt.err }}}
			h.Known.At = dsl.Clause{Text: "self.until", Place: "op.yaml:1"}
			tt.want.What, tt.want.Text, tt.want.Place = "at", "self.until", "op.yaml:1"
			got := h.Explain(&dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{}}, Now: noon, Secrets: tt.secrets})
			if diff := cmp.Diff([]dsl.Clause{tt.want}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLabelsAndAnnotationsAreExplained holds that each of them says its answer and the value of the object.
func TestLabelsAndAnnotationsAreExplained(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{"a": "x", "b": strings.Repeat("ä", 100)},
		"annotations": map[string]any{corev1.LastAppliedConfigAnnotation: `{"data": {}}`},
	}}}
	tests := map[string]struct {
		option  dsl.Option
		secrets []string
		want    dsl.Clause
	}{
		"a value":                         {dsl.Label("a", "x"), nil, dsl.Clause{What: "label", Text: "a=x", Holds: true, Values: []dsl.ClauseValue{{Text: "a", Value: `"x"`}}}},
		"another value":                   {dsl.Label("a", "y"), nil, dsl.Clause{What: "label", Text: "a=y", Values: []dsl.ClauseValue{{Text: "a", Value: `"x"`}}}},
		"one that is not there":           {dsl.LabelExists("c"), nil, dsl.Clause{What: "label", Text: "c", Values: []dsl.ClauseValue{{Text: "c", Value: dsl.NotSet}}}},
		"one that must not be there":      {dsl.LabelAbsent("a"), nil, dsl.Clause{What: "label", Text: "!a", Values: []dsl.ClauseValue{{Text: "a", Value: `"x"`}}}},
		"an annotation":                   {dsl.Annotation("c", "x"), nil, dsl.Clause{What: "annotation", Text: "c=x", Values: []dsl.ClauseValue{{Text: "c", Value: dsl.NotSet}}}},
		"a long one":                      {dsl.Label("b", "y"), nil, dsl.Clause{What: "label", Text: "b=y", Values: []dsl.ClauseValue{{Text: "b", Value: `"` + strings.Repeat("ä", 48) + `…"`}}}},
		"one that repeats an object":      {dsl.AnnotationExists(corev1.LastAppliedConfigAnnotation), nil, dsl.Clause{What: "annotation", Text: corev1.LastAppliedConfigAnnotation, Holds: true, Values: []dsl.ClauseValue{{Text: corev1.LastAppliedConfigAnnotation, Value: `"{\"data\": {}}"`}}}},
		"one that repeats a Secret":       {dsl.AnnotationExists(corev1.LastAppliedConfigAnnotation), []string{"self"}, dsl.Clause{What: "annotation", Text: corev1.LastAppliedConfigAnnotation, Holds: true, Values: []dsl.ClauseValue{{Text: corev1.LastAppliedConfigAnnotation, Value: dsl.Secret}}}},
		"one of a Secret that is not set": {dsl.AnnotationExists("c"), []string{"self"}, dsl.Clause{What: "annotation", Text: "c", Values: []dsl.ClauseValue{{Text: "c", Value: dsl.NotSet}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var h dsl.Handler
			test.option(&h)
			got := h.Explain(&dsl.Subject{Object: object, Secrets: dsl.Secrets{From: test.secrets}})
			if diff := cmp.Diff([]dsl.Clause{test.want}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
