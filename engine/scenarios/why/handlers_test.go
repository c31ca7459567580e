// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// answer asks why about web, and returns the answer as people read it.
func answer(s *scene.Stage) string {
	s.T.Helper()
	return answerTo(s, why.Question{Resource: "foo", Namespace: "default", Name: "web"})
}

func answerTo(s *scene.Stage, q why.Question) string {
	s.T.Helper()
	a, err := s.Process.Engine().Why(context.Background(), q)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if err := why.Text(&b, a, false); err != nil {
		s.T.Error(err)
	}
	return b.String()
}

// wantLine fails the test unless some line of the answer is this one, or begins so where a place in the code follows.
func wantLine(s *scene.Stage, got, want string) {
	s.T.Helper()
	for line := range strings.Lines(got) {
		line = strings.TrimSpace(line)
		if line == want || strings.HasSuffix(want, "(") && strings.HasPrefix(line, want) {
			return
		}
	}
	s.T.Errorf("no line says %q:\n%s", want, got)
}

// never is a condition that does not hold.
func never(*dsl.Subject) (bool, error) { return false, nil }

// story is an operator, what happens to its object, and a line of the answer then.
type story struct {
	operator func(foo *dsl.Resource, j *kit.Journal)
	then     func(s *scene.Stage)
	want     string
}

// TestWhyOfAHandler holds the sentence for each reason for which a handler has run, or has not.
func TestWhyOfAHandler(t *testing.T) {
	fine := func(_ context.Context, _ *dsl.Request) error { return nil }
	for name, tt := range map[string]story{
		"a handler that is through has nothing to do": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine)
		}, nil, "handler app has nothing to do: nothing that it looks at has changed"},
		"its last attempt is named": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine)
		}, func(s *scene.Stage) { s.Advance(time.Minute) }, "ran last 1m ago for create: success"},
		"what had changed is named, with its values": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine)
		}, func(s *scene.Stage) { s.Resize(5) }, "for a change of spec.size: from 1 to 5"},
		"a label does not match": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine, dsl.Label("tier", "gold"))
		}, nil, "handler app does not see the object: label tier is not set"},
		"a when is false": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", fine, dsl.When(never))
		}, nil, "handler app does not run: its when is false: why_test.never ("},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.operator, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if tt.then != nil {
					tt.then(s)
					s.Settle()
				}
				wantLine(s, answer(s), tt.want)
			}})
		})
	}
}
