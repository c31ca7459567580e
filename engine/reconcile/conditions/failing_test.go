// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWhatIsSaidOfHandlers holds when the condition is written, and in what words.
func TestWhatIsSaidOfHandlers(t *testing.T) {
	object := func(status, reason, message string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False"},
			map[string]any{"type": HandlersFailing, "status": status, "reason": reason, "message": message},
		}}}}
	}
	bare := &unstructured.Unstructured{Object: map[string]any{}}
	said := object("True", HandlerFailing, "Operator op: a: no route")
	fails := func(id, reason string, ran bool) Handler {
		return Handler{ID: id, Reason: reason, Message: "no " + id, Ran: ran}
	}
	well := Handler{ID: "a"}
	tests := map[string]struct {
		object   *unstructured.Unstructured
		handlers []Handler
		owed     bool
		want     string
	}{
		"no handler fails": {bare, []Handler{well}, false, "leave"},
		"one fails":        {bare, []Handler{fails("a", HandlerFailing, true)}, false, "HandlerFailing Operator op: a: no a"},
		"one that did not run was reported when it did":            {bare, []Handler{fails("a", HandlerFailing, false)}, false, "leave"},
		"but not if that could not be written":                     {bare, []Handler{fails("a", HandlerFailing, false)}, true, "HandlerFailing Operator op: a: no a"},
		"a filter fails without a run":                             {bare, []Handler{fails("a", FilterFailed, false)}, false, "FilterFailed Operator op: a: no a"},
		"of two the graver reason, and the words of the first":     {bare, []Handler{fails("a", HandlerFailing, true), fails("b", HandlerFailed, true)}, false, "HandlerFailed Operator op: a, b: no a"},
		"the same one once more":                                   {said, []Handler{fails("a", HandlerFailing, true)}, false, "leave"},
		"the same one for good now":                                {said, []Handler{fails("a", HandlerFailed, true)}, false, "HandlerFailed Operator op: a: no a"},
		"one more":                                                 {said, []Handler{fails("a", HandlerFailing, false), fails("b", HandlerFailing, true)}, false, "HandlerFailing Operator op: a, b: no a"},
		"it works":                                                 {said, []Handler{well}, false, "mended"},
		"it is about to be tried again":                            {said, []Handler{{ID: "a", Undecided: true}}, false, "leave"},
		"it is about to be tried again, and another one fails":     {said, []Handler{{ID: "a", Undecided: true}, fails("b", HandlerFailed, true)}, false, "HandlerFailed Operator op: a, b: no b"},
		"one that is not named and about to be tried again":        {said, []Handler{{ID: "b", Undecided: true}}, false, "mended"},
		"another operator's":                                       {object("True", HandlerFailing, "Operator other: a: no route"), nil, false, "foreign"},
		"somebody's own, that says that none fails, is left alone": {object("False", "AllWell", "none"), nil, false, "foreign"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := FailuresOf(tt.object, "op")
			set, mended, failing := s.Next(tt.handlers, tt.owed)
			got := "leave"
			switch {
			case s.Foreign():
				got = "foreign"
			case mended:
				got = "mended"
			case set != nil:
				got = fmt.Sprintf("%s %s", set.Reason, set.Message)
			}
			if got != tt.want {
				t.Errorf("it is to %q, want %q", got, tt.want)
			}
			if mended && failing {
				t.Error("it is mended, and one fails")
			}
		})
	}
}
