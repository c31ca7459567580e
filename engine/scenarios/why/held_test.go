// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// heldOperator has a child by reference and one by record, a condition, a machine, and a handler that changes what another one does.
const heldOperator = `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com,
machine: {states: [{name: Pending, transitions: [{to: Done, when: "self.spec.size > 3"}]}, {name: Done, terminal: true}]},
handlers: [
{id: keep, apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: "${string(self.spec.size)}"}}}},
{id: far, apply: {far: {onDelete: orphan, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: far}}}}},
{id: late, causes: [reconcile], when: "self.spec.size > 5", set: {status: {late: "${self.spec.size}"}}},
{id: beat, every: 1m, set: {status: {beat: "${string(now)}"}}},
{id: left, causes: [reconcile], when: "self.spec.color in ['both', 'left']", set: {labels: {side: left}}},
{id: right, causes: [reconcile], when: "self.spec.color == 'both'", set: {labels: {side: right}}}]}]}`

// TestAnAnswerIsTheSameWhateverHoldsTheObject holds that children, conditions and machines are named whatever keeps handlers from
// running, and what handlers are to do then; and that to ask changes nothing.
func TestAnAnswerIsTheSameWhateverHoldsTheObject(t *testing.T) {
	pause := func(s *scene.Stage) {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			notes := o.GetAnnotations()
			notes["op.handwerk.dev/paused"] = "while we move"
			o.SetAnnotations(notes)
		})
	}
	for name, tt := range map[string]struct {
		hold func(s *scene.Stage)
		want []string
	}{
		"nothing does": {func(*scene.Stage) {}, []string{"handler keep has nothing to do: nothing that it looks at has changed"}},
		"a pause does": {pause, []string{"paused: while we move (take off annotation op.handwerk.dev/paused to go on)", "handler keep has nothing to do: nothing that it looks at has changed"}},
		"a pause does, and its handlers are to run": {func(s *scene.Stage) {
			pause(s)
			s.Settle()
			s.Resize(2)
		}, []string{"paused: while we move (take off annotation op.handwerk.dev/paused to go on)", "handler keep is to run for update"}},
		"the cache is behind": {func(s *scene.Stage) {
			s.HoldWatches(scene.Foos)
			s.Advance(3 * time.Minute)
		}, []string{"no handler runs until the cache shows the operator's own writes"}},
		"a refused write does": {func(s *scene.Stage) {
			s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(errors.New("no room")))
			s.Set("left", "spec", "color")
			s.Advance(10 * time.Second)
		}, []string{"failing: reconcile could not be finished: writing object: Internal error occurred: no room"}},
		"a right that the operator lacks does": {func(s *scene.Stage) {
			s.Forbid("patch", scene.ConfigMaps)
			s.Resize(2)
			s.Advance(10 * time.Minute)
		}, []string{"right is missing: may not patch configmaps (handler foos/far; handler foos/keep; account operator)"}},
		"its own loop does": {func(s *scene.Stage) {
			s.Set("both", "spec", "color")
			s.Advance(10 * time.Second)
		}, []string{"no handler runs: the object's reconciles wrote again and again without coming to rest; the next reconcile is in 50s"}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayConfiguration(t, heldOperator, func(s *scene.Stage) {
				s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				tt.hold(s)
				s.Settle()
				before := passes(s)
				got := answer(s)
				for _, want := range append(tt.want,
					"child ConfigMap default/web of handler keep (by owner reference): ready", "child ConfigMap default/far of handler far (by its label, and listed on the object): ready",
					"when: self.spec.size > 5 (op.yaml:6): no", "to Done: when: self.spec.size > 3 (op.yaml:2): no",
				) {
					wantLine(s, got, want)
				}
				s.Settle()
				if diff := cmp.Diff(before, passes(s)); diff != "" {
					s.T.Errorf("the question has made a pass:\n%s", diff)
				}
			})
		})
	}
}

// passes are those over web that are kept.
func passes(s *scene.Stage) []why.Reconcile {
	s.T.Helper()
	a, err := s.Process.Engine().Why(s.T.Context(), why.Question{Resource: "foo", Namespace: "default", Name: "web", History: true})
	if err != nil {
		s.T.Fatal(err)
	}
	return a.History
}
