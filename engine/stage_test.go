// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"

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
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) { one.operator(foo, &s.Journal) })
		one.play(s)
	})
}

// stage is where a scenario plays.
type stage struct {
	*enginetest.Stage
	t *testing.T
}

// journal notes what handlers were called with.
type journal = enginetest.Journal

// newStage returns a stage for an operator named op.
func newStage(t *testing.T, c *enginetest.Cluster) *stage {
	return &stage{Stage: enginetest.NewStage(c, dsl.New("op")), t: t}
}

// begin starts the operator, creates web, and forgets what was called and written for it.
func (s *stage) begin() {
	s.t.Helper()
	s.Launch()
	s.Create(web)
	s.Forget()
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

// fails returns a handler that fails.
func fails(err error) dsl.Func { return func(context.Context, *dsl.Request) error { return err } }

// succeeds is a handler that does nothing.
func succeeds(context.Context, *dsl.Request) error { return nil }

// ctx keeps the lines of handlers short.
type ctx = context.Context

// keepsBar is a handler that keeps a child of a custom resource.
func keepsBar(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": r.Object.GetName()},
	})
	return err
}
