// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// argoHealth judges an object as the health scripts of Argo CD for kinds with these conditions do: by the generation, then Stalled,
// Reconciling and Ready. See https://github.com/argoproj/argo-cd/tree/master/resource_customizations.
func argoHealth(o *unstructured.Unstructured) string {
	is := func(kind, want string) bool { return Text(Of(o, kind), "status") == want }
	seen, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	switch {
	case found && seen != o.GetGeneration():
		return "Progressing"
	case is(Stalled, "True"):
		return "Degraded"
	case is(Reconciling, "True"):
		return "Progressing"
	case is(dsl.Ready, "True"):
		return "Healthy"
	case is(dsl.Ready, "False"):
		return "Degraded"
	}
	return "Progressing"
}

// written returns an object of generation 2 with conditions after those of a summary were written to it.
func written(o *unstructured.Unstructured, summary []metav1.Condition) *unstructured.Unstructured {
	out, list := o.DeepCopy(), []any{}
	for _, c := range All(o) {
		if i := len(list); !isIn(summary, Text(c, "type")) {
			list = append(list[:i], c)
		}
	}
	for _, c := range summary {
		if c.Status != "" {
			list = append(list, condition(c, o.GetGeneration()))
		}
	}
	_ = unstructured.SetNestedField(out.Object, list, "status", "conditions")
	_ = unstructured.SetNestedField(out.Object, o.GetGeneration(), "status", "observedGeneration")
	return out
}

func isIn(some []metav1.Condition, kind string) bool {
	for _, c := range some {
		if c.Type == kind {
			return true
		}
	}
	return false
}

func condition(c metav1.Condition, generation int64) map[string]any {
	return map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message, "observedGeneration": generation}
}

// anApp returns an object of generation 2 with conditions of an earlier or of this generation.
func anApp(generation int64, some ...metav1.Condition) *unstructured.Unstructured {
	list := []any{}
	for _, c := range some {
		list = append(list, condition(c, generation))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "App", "metadata": map[string]any{"name": "web", "generation": int64(2)},
		"status": map[string]any{"conditions": list},
	}}
}

func says(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message}
}

// TestOtherToolsUnderstandTheConditions holds what kstatus and Argo CD make of an object in 24 situations, and that a second reconcile
// with the same findings changes nothing.
func TestOtherToolsUnderstandTheConditions(t *testing.T) {
	const (
		isTrue, isFalse, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	)
	applied := func(is metav1.ConditionStatus, reason string) *metav1.Condition {
		return new(says("Applied", is, reason, "m"))
	}
	applies := func(c *metav1.Condition) Handler { return Handler{ID: "app", Counts: true, Own: c} }
	well, code := applies(applied(isTrue, "AllApplied")), Handler{ID: "code", Counts: true}
	failing := func(h Handler, reason string) Handler { h.Reason, h.Message = reason, "no route"; return h }
	child := func(r dsl.Readiness) []Child { return []Child{{Handler: "app", Readiness: r}} }
	worked := []metav1.Condition{says(dsl.Ready, isFalse, "Waiting", "m"), says(Reconciling, isTrue, "Waiting", "m")}
	stuck := []metav1.Condition{says(dsl.Ready, isFalse, HandlerFailed, "m"), says(Stalled, isTrue, HandlerFailed, "m")}
	tests := map[string]struct {
		object   *unstructured.Unstructured
		handlers []Handler
		children []Child
		kstatus  status.Status
		argo     string
	}{
		"all is well":                                      {anApp(2), []Handler{well, code}, child(dsl.Readiness{Ready: true}), status.CurrentStatus, "Healthy"},
		"all is well after work":                           {anApp(2, worked...), []Handler{well}, nil, status.CurrentStatus, "Healthy"},
		"all is well after a person has helped":            {anApp(2, stuck...), []Handler{well}, nil, status.CurrentStatus, "Healthy"},
		"a handler of a new generation is not through":     {anApp(1, says(dsl.Ready, isTrue, "AllReady", "")), []Handler{{ID: "code", Counts: true, Open: true}}, nil, status.InProgressStatus, "Progressing"},
		"a handler of a ready object is not through":       {anApp(2, says(dsl.Ready, isTrue, "AllReady", "")), []Handler{{ID: "code", Counts: true, Open: true}}, nil, status.CurrentStatus, "Healthy"},
		"a handler waits":                                  {anApp(2), []Handler{{ID: "code", Counts: true, Open: true, Waiting: true, Message: "waiting for the queue"}}, nil, status.InProgressStatus, "Progressing"},
		"a handler fails and is tried again":               {anApp(2), []Handler{failing(code, HandlerFailing)}, nil, status.InProgressStatus, "Progressing"},
		"a handler has failed for good":                    {anApp(2), []Handler{failing(code, HandlerFailed)}, nil, status.FailedStatus, "Degraded"},
		"a handler has failed for good after some tries":   {anApp(2, worked...), []Handler{failing(code, HandlerFailed)}, nil, status.FailedStatus, "Degraded"},
		"a filter fails":                                   {anApp(2), []Handler{failing(code, FilterFailed)}, nil, status.FailedStatus, "Degraded"},
		"a child is somebody else's":                       {anApp(2), []Handler{applies(applied(isFalse, "NotOwned"))}, nil, status.FailedStatus, "Degraded"},
		"a child is forbidden":                             {anApp(2), []Handler{failing(applies(applied(isFalse, "Forbidden")), HandlerFailing)}, nil, status.FailedStatus, "Degraded"},
		"a child is invalid":                               {anApp(2), []Handler{applies(applied(isFalse, "Invalid"))}, nil, status.FailedStatus, "Degraded"},
		"a webhook denies a child":                         {anApp(2), []Handler{applies(applied(isFalse, "Denied"))}, nil, status.FailedStatus, "Degraded"},
		"a quota is exceeded":                              {anApp(2), []Handler{failing(applies(applied(isFalse, "QuotaExceeded")), HandlerFailing)}, nil, status.InProgressStatus, "Progressing"},
		"an expression misses a value of a new child":      {anApp(2), []Handler{applies(applied(isFalse, "Unresolved"))}, nil, status.InProgressStatus, "Progressing"},
		"an expression still misses it at the last try":    {anApp(2), []Handler{failing(applies(applied(isFalse, "Unresolved")), HandlerFailed)}, nil, status.FailedStatus, "Degraded"},
		"a child is not ready":                             {anApp(2), []Handler{well}, child(dsl.Readiness{Reason: "LessReplicas", Stage: "m"}), status.InProgressStatus, "Progressing"},
		"a child has failed":                               {anApp(2), []Handler{well}, child(dsl.Readiness{Failed: true, Reason: "ProgressDeadlineExceeded", Stage: "m"}), status.FailedStatus, "Degraded"},
		"a child fails, and a handler for good":            {anApp(2), []Handler{failing(code, HandlerFailed)}, child(dsl.Readiness{Reason: "LessReplicas", Stage: "m"}), status.FailedStatus, "Degraded"},
		"a handler with children is filtered":              {anApp(2, worked...), []Handler{applies(applied(unknown, "Filtered"))}, child(dsl.Readiness{Ready: true}), status.InProgressStatus, "Progressing"},
		"a filtered handler has no children, another acts": {anApp(2), []Handler{applies(applied(unknown, "Filtered")), code}, nil, status.CurrentStatus, "Healthy"},
		"no handler sees an object that is stuck":          {anApp(2, stuck...), []Handler{{ID: "code"}}, nil, status.InProgressStatus, "Progressing"},
		"an unwanted child is not ready":                   {anApp(2), []Handler{well}, []Child{{Handler: "app", Unwanted: true}}, status.CurrentStatus, "Healthy"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := Input{Object: tt.object, Handlers: tt.handlers, Children: tt.children}
			in.Object = written(tt.object, Summary(in))
			got, err := status.Compute(in.Object)
			if err != nil || got.Status != tt.kstatus {
				t.Errorf("kstatus finds %+v (%v), want %s", got, err, tt.kstatus)
			}
			if got := argoHealth(in.Object); got != tt.argo {
				t.Errorf("Argo CD finds %s, want %s", got, tt.argo)
			}
			if diff := cmp.Diff(in.Object, written(in.Object, Summary(in))); diff != "" {
				t.Errorf("a second reconcile changes the conditions (-before +after):\n%s", diff)
			}
			ready, beside := Of(in.Object, dsl.Ready), Of(in.Object, Reconciling)
			if stalled := Of(in.Object, Stalled); stalled != nil {
				if beside != nil {
					t.Error("both Reconciling and Stalled stand")
				}
				beside = stalled
			}
			if beside != nil && (beside["reason"] != ready["reason"] || beside["message"] != ready["message"]) {
				t.Errorf("%v does not say what Ready says: %v", beside, ready)
			}
		})
	}
}

// TestConditionsOfOthersStay holds which conditions Reconciling and Stalled the engine leaves alone.
func TestConditionsOfOthersStay(t *testing.T) {
	theirs, ready := says(Stalled, metav1.ConditionTrue, "Blocked", "by hand"), says(dsl.Ready, metav1.ConditionFalse, "Waiting", "m")
	ours := says(Reconciling, metav1.ConditionTrue, "Waiting", "m")
	fails := []Handler{{ID: "code", Counts: true, Reason: HandlerFailed, Message: "no"}}
	tests := map[string]struct {
		in   Input
		want []string
	}{
		"another controller's is left alone":             {Input{Object: anApp(2, ready, theirs), Handlers: fails}, []string{"Ready=False"}},
		"one that a handler sets is left alone":          {Input{Object: anApp(2), Handlers: fails, Set: []metav1.Condition{theirs}}, []string{"Ready=False"}},
		"the engine's own changes with Ready":            {Input{Object: anApp(2, ready, ours), Handlers: fails}, []string{"Ready=False", "Reconciling=", "Stalled=True"}},
		"the engine's own is known if Ready was edited":  {Input{Object: anApp(2, says(dsl.Ready, metav1.ConditionTrue, "Mine", ""), ours), Handlers: fails, Was: DigestOf(&ready)}, []string{"Ready=False", "Reconciling=", "Stalled=True"}},
		"the engine's own is known if Ready was removed": {Input{Object: anApp(2, ours), Handlers: fails}, []string{"Ready=False", "Reconciling=", "Stalled=True"}},
		"nothing is set while nothing is known":          {Input{Object: anApp(2), Handlers: []Handler{{ID: "code"}}}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Summary(tt.in) {
				got = append(got, c.Type+"="+string(c.Status))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("it sets (-want +got):\n%s", diff)
			}
		})
	}
	if got := Withdrawn(Input{Object: anApp(2, ready, ours, theirs)}); len(got) != 1 || got[0].Type != Reconciling || got[0].Status != "" {
		t.Errorf("an object whose Ready is somebody else's gets %+v, want the removal of Reconciling", got)
	}
}
