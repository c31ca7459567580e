// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package podwatch has the function of samples/podwatch and samples/itemwatch.
package podwatch

import (
	"context"
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// failLabel is a label on an object that makes Print fail, to show how failed items are handled.
const failLabel = "podwatch.handwerk.dev/fail"

// Print logs events of a Pod, or of an object of another kind, as client-go's workqueue example prints them.
func Print(_ context.Context, r *dsl.Request) error {
	words := map[dsl.Cause]string{
		dsl.Create: "Add", dsl.Update: "Update", dsl.Delete: "Delete", dsl.Resume: "Sync", dsl.Resync: "Sync",
	}
	if r.Object.GetLabels()[failLabel] != "" && r.Cause != dsl.Delete {
		return fmt.Errorf("this %s is labelled to fail", r.Object.GetKind())
	}
	r.Log.Info(words[r.Cause] + " for " + r.Object.GetKind() + " " + r.Object.GetName())
	return nil
}

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{Name: "podwatch.Print", Func: Print, Doc: "logs what happens to an object", Needs: []dsl.Need{}})
}

// Operator is samples/podwatch/operator.yaml written in Go.
func Operator() *dsl.Operator {
	op := dsl.New("podwatch")
	op.Resource("pods.v1", func(pod *dsl.Resource) {
		pod.On([]dsl.Cause{dsl.Create, dsl.Update, dsl.Resume}, "print", Print, dsl.Retries(5), dsl.WithNeeds())
		pod.OnDelete("farewell", Print, dsl.Retries(5), dsl.NoFinalizer(), dsl.WithNeeds())
	})
	return op
}

// ItemOperator is samples/itemwatch/operator.yaml written in Go.
func ItemOperator() *dsl.Operator {
	op := dsl.New("itemwatch")
	op.Resource("items.v1.podwatch.handwerk.dev", func(item *dsl.Resource) {
		item.On([]dsl.Cause{dsl.Create, dsl.Update, dsl.Resume}, "print", Print, dsl.Retries(5), dsl.WithNeeds())
		item.OnDelete("farewell", Print, dsl.Retries(5), dsl.WithNeeds())
	})
	return op
}
