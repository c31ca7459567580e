// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package foobar has the function of samples/foobar.
package foobar

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// errNotBar makes the engine retry with back-off until the value is changed.
var errNotBar = errors.New(`spec.value is not "bar"`)

// Ready sets a Foo's condition Ready: True while spec.value is "bar", False otherwise.
func Ready(_ context.Context, r *dsl.Request) error {
	value, _ := dsl.Path{"spec", "value"}.In(r.Object.Object)
	if value == "bar" {
		r.Patch.SetCondition("Ready", metav1.ConditionTrue, "FooIsBar", `The value is "bar".`)
		return nil
	}
	r.Patch.SetCondition("Ready", metav1.ConditionFalse, "FooNotBar", `The value must be "bar".`)
	return errNotBar
}

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "foobar.Ready", Func: Ready, Doc: `sets condition Ready: True while spec.value is "bar"`,
		Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
}

// Operator is operator.yaml written in Go.
func Operator() *dsl.Operator {
	op := dsl.New("foobar")
	op.Resource("foos.v1.foo.example.com", func(foo *dsl.Resource) {
		foo.OnReconcile("ready", Ready, dsl.Needs("patch", "self/status"))
	})
	return op
}
