// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package guests has the function of samples/memo.
package guests

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// guest is somebody to be greeted.
type guest struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Name string `json:"name"`
	} `json:"spec"`
	Status struct {
		Greeting string `json:"greeting,omitempty"`
	} `json:"status"`
}

// greetings counts how often a guest was greeted, in this process.
type greetings struct{ count int }

// greeted is the result of a greeting.
type greeted struct {
	Times  int `json:"times"`
	Guests int `json:"guests"`
}

// Greet writes a greeting to the status, with typed code. Its result has the number of greetings, from the
// object's memo, and the number of guests in this process, from the operator's memo.
func Greet(_ context.Context, r *dsl.TypedRequest[guest]) error {
	seen := dsl.MemoOf[greetings](r.Memo)
	seen.count++
	guests := 0
	r.OperatorMemo.Update("guests", func(known any) any {
		guests, _ = known.(int)
		if seen.count == 1 {
			guests++
		}
		return guests
	})
	r.Object.Status.Greeting = "Hello, " + r.Object.Spec.Name
	r.Result(greeted{Times: seen.count, Guests: guests})
	return nil
}

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "guests.Greet", Func: dsl.Typed(Greet), Doc: "greets a guest, and counts how often",
		Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
}

// Operator is operator.yaml written in Go.
func Operator() *dsl.Operator {
	op := dsl.New("memo")
	op.Resource("guests.v1alpha1.samples.handwerk.dev", func(guest *dsl.Resource) {
		guest.OnReconcile("greet", dsl.Typed(Greet), dsl.Field("spec.name"), dsl.Needs("patch", "self/status"))
	})
	return op
}
