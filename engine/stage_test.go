// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const (
	foos        = "foos.v1.example.com"
	deployments = "deployments.v1.apps"
	state       = "op.handwerk.dev/state"
	finalizer   = "op.handwerk.dev/finalizer"
)

// web is the Foo that most tests are about.
const web = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, color: red}}`

// errAgain is what handlers of tests fail with.
var errAgain = errors.New("not yet")

// scenario is an operator for Foos and what happens to it.
type scenario struct {
	// operator declares the handlers of the resource foos.
	operator func(foo *dsl.Resource, j *journal)
	play     func(s *stage)
}

// scenarios plays each scenario on a stage of its own. A name says what is promised.
func scenarios(t *testing.T, all map[string]scenario) {
	t.Helper()
	for name, one := range all {
		t.Run(name, func(t *testing.T) { perform(t, one) })
	}
}

func perform(t *testing.T, one scenario) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		s := &stage{Cluster: c, t: t, journal: &journal{}}
		s.op = dsl.New("op")
		s.op.Resource(foos, func(foo *dsl.Resource) { one.operator(foo, s.journal) })
		one.play(s)
	})
}

// stage is where a scenario plays.
type stage struct {
	*enginetest.Cluster
	t       *testing.T
	op      *dsl.Operator
	p       *enginetest.Process
	journal *journal
}

// start starts the operator.
func (s *stage) start() {
	s.t.Helper()
	s.p = s.Start(s.op)
}

// begin starts the operator, creates web, and forgets what was called and written for it.
func (s *stage) begin() {
	s.t.Helper()
	s.start()
	s.Create(web)
	s.forget()
}

// forget settles, and forgets what was called and written.
func (s *stage) forget() {
	s.Settle()
	s.journal.take()
	s.Writes()
}

// calls settles and compares the handlers' calls since it was called last.
func (s *stage) calls(want ...string) {
	s.t.Helper()
	s.Settle()
	if diff := cmp.Diff(want, s.journal.take(), cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// writes settles and compares the write requests since it was called last.
func (s *stage) writes(want ...string) {
	s.t.Helper()
	s.Settle()
	var got []string
	for _, w := range s.Writes() {
		got = append(got, w.String())
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// web returns the Foo, nil when it is gone.
func (s *stage) web() *unstructured.Unstructured {
	s.t.Helper()
	return s.Get(foos, "default", "web")
}

// set sets a field of web.
func (s *stage) set(value any, path ...string) {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			s.t.Error(err)
		}
	})
}

// size sets web's spec.size, the change that most tests make.
func (s *stage) size(n int64) {
	s.t.Helper()
	s.set(n, "spec", "size")
}

// remove deletes web.
func (s *stage) remove() {
	s.t.Helper()
	s.Delete(foos, "default", "web")
}

// journal notes what handlers were called with.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// note returns a handler that notes its calls, as in "announce update", or "announce update 2" for
// the second attempt. It then does what is given: each call the next, the last one for all that
// follow.
func (j *journal) note(id string, then ...dsl.Func) dsl.Func {
	var n atomic.Int32
	return func(ctx context.Context, r *dsl.Request) error {
		line := id + " " + string(r.Cause)
		if r.Attempt > 1 {
			line += fmt.Sprint(" ", r.Attempt)
		}
		j.add(line)
		if len(then) == 0 {
			return nil
		}
		return then[min(int(n.Add(1)), len(then))-1](ctx, r)
	}
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// take returns the lines since it was called last.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.lines
	j.lines = nil
	return out
}

// fails returns a handler that fails.
func fails(err error) dsl.Func { return func(context.Context, *dsl.Request) error { return err } }

// succeeds is a handler that does nothing.
func succeeds(context.Context, *dsl.Request) error { return nil }

// sorted is calls for those of several objects, which come in no order.
func sorted(s *stage, want ...string) {
	s.t.Helper()
	s.Settle()
	got := s.journal.take()
	slices.Sort(got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("calls, sorted (-want +got):\n%s", diff)
	}
}

// ctx keeps the lines of handlers short.
type ctx = context.Context

// keepsBar is a handler that keeps a child of a custom resource.
func keepsBar(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": r.Object.GetName()},
	})
	return err
}
