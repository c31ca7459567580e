// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// begins is when each test begins: the first moment of a synctest bubble.
var begins = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var errNotYet = errors.New("not yet")

// given is what an attempt begins with.
type given struct {
	machine dsl.Machine
	// at is the state in the progress, for how long the object has been in it, and whether Enter has succeeded; empty for an object
	// without progress.
	at       string
	since    time.Duration
	entered  bool
	failures int64
	// status are more fields of the status, and goTo is the annotation.
	status map[string]any
	goTo   string
	cause  dsl.Cause
	input  Input
}

// came is what an attempt has come to, as its reconcile sees it. An empty field is not there.
type came struct {
	// Ran are the actions that were called, and Moves are the transitions.
	Ran, Moves []string
	// State is the state that is written, with the failures, and whether Enter has succeeded.
	State string
	// Ready is the condition.
	Ready string
	// Events are those of the attempt, and Removed are annotations.
	Events, Removed []string
	// Again is when another attempt is asked for, and Err is the attempt's error.
	Again, Err string
	// Permanent: the error is.
	Permanent bool
	// Alone: the changes are written without a transition.
	Alone bool
}

// actions calls back for each action of a test's states.
type actions struct{ ran []string }

// note returns an action that notes its call.
func (a *actions) note(name string, then dsl.Func) dsl.Func {
	if then == nil {
		return nil
	}
	return func(ctx context.Context, r *dsl.Request) error {
		a.ran = append(a.ran, name)
		return then(ctx, r)
	}
}

// sent are the Events of an attempt.
type sent struct{ list []string }

func (s *sent) Event(kind dsl.EventType, reason, format string, args ...any) {
	s.list = append(s.list, fmt.Sprintf("%s %s %s", kind, reason, fmt.Sprintf(format, args...)))
}

func (s *sent) EventAbout(any, dsl.EventType, string, string, ...any) error {
	return errors.ErrUnsupported
}

// object returns the object that an attempt finds.
func (g given) object() *unstructured.Unstructured {
	status := map[string]any{}
	if g.at != "" {
		status = Book{State: g.at, Since: time.Now().Add(-g.since), Failures: g.failures}.tree("u")
	}
	if g.entered {
		status[dsl.BookEntered] = stamp(time.Now().Add(-g.since))
	}
	maps.Copy(status, g.status)
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "status": status}}
	if g.goTo != "" {
		o.SetAnnotations(map[string]string{"op/goto": g.goTo})
	}
	return o
}

// attempt makes an attempt, and returns its result and what it has come to.
func (g given) attempt(t *testing.T) (Result, came) {
	t.Helper()
	var calls actions
	m := g.machine
	for _, states := range []*[]dsl.State{&m.States, &m.Deletion} {
		all := *states
		*states = nil
		for _, s := range all {
			s.Enter, s.During = calls.note("enter "+s.Name, s.Enter), calls.note("during "+s.Name, s.During)
			*states = append(*states, s)
		}
	}
	in, events := g.input, &sent{}
	in.Handler, in.Prefix = &dsl.Handler{ID: m.ID(), Machine: &m}, "op"
	r := &dsl.Request{Patch: dsl.NewPatch(), Events: events}
	r.Object, r.Log, r.Cause = g.object(), logr.Discard(), g.cause
	result, err := Run(t.Context(), in, r)
	out := came{Ran: calls.ran, Events: events.list, Alone: result.Sent.Put, State: written(&m, r.Patch)}
	for _, v := range result.Moves {
		out.Moves = append(out.Moves, v.String())
	}
	for _, c := range r.Patch.Offered {
		if c.Type == dsl.Ready {
			out.Ready = strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
		}
	}
	if list, _, _ := unstructured.NestedMap(r.Patch.Object, "metadata", "annotations"); list != nil {
		for key := range list {
			out.Removed = append(out.Removed, key)
		}
	}
	if r.Again != nil {
		out.Again = r.Again.String()
	}
	if err != nil {
		out.Err, out.Permanent = err.Error(), dsl.IsPermanent(err)
	}
	return result, out
}

// written returns the state in a patch.
func written(m *dsl.Machine, p *dsl.Patch) string {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "status": p.Status}}
	b, found := Read(m, o)
	if !found {
		return ""
	}
	out := b.State
	if !b.Entered.IsZero() {
		out += " entered"
	}
	if b.Failures > 0 {
		out += fmt.Sprintf(" failed %d", b.Failures)
	}
	return out
}

// attempts holds what single attempts come to.
func attempts(t *testing.T, tests map[string]struct {
	given
	came
}) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, got := test.attempt(t)
				if diff := cmp.Diff(test.came, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The actions and conditions of tests.

func succeeds(context.Context, *dsl.Request) error { return nil }

func failing(err error) dsl.Func { return func(context.Context, *dsl.Request) error { return err } }

func setsLabel(_ context.Context, r *dsl.Request) error { r.Patch.Label("size", "2"); return nil }

func setsStatus(_ context.Context, r *dsl.Request) error { r.Patch.SetStatus("size", 2); return nil }

func holds(*dsl.Subject) (bool, error) { return true, nil }

func never(*dsl.Subject) (bool, error) { return false, nil }

func asking(err error) dsl.Predicate { return func(*dsl.Subject) (bool, error) { return false, err } }

// hasLabel holds when an action has set the label.
func hasLabel(about *dsl.Subject) (bool, error) { return about.Object.GetLabels()["size"] == "2", nil }

// to returns transitions.
func to(when dsl.Predicate, states ...string) (out []dsl.Transition) {
	for _, s := range states {
		out = append(out, dsl.Transition{To: s, When: when})
	}
	return out
}

// twoStates is a machine that goes from Up to Down, with another way out into Lost.
func twoStates(up dsl.State) dsl.Machine {
	up.Name = "Up"
	return dsl.Machine{States: []dsl.State{up, {Name: "Down", Terminal: true}, {Name: "Lost", Terminal: true, Failed: true}}}
}
