// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

// failLabel on a Pod makes PodPrint fail, to show what becomes of an item that does.
const failLabel = "podwatch.handwerk.dev/fail"

// PodPrint logs what happens to a Pod, as client-go's workqueue example prints it.
func PodPrint(_ context.Context, r *dsl.Request) error {
	words := map[dsl.Cause]string{
		dsl.Create: "Add", dsl.Update: "Update", dsl.Delete: "Delete", dsl.Resume: "Sync", dsl.Resync: "Sync",
	}
	if r.Object.GetLabels()[failLabel] != "" && r.Cause != dsl.Delete {
		return errors.New("this Pod is labelled to fail")
	}
	r.Log.Info(words[r.Cause] + " for Pod " + r.Object.GetName())
	return nil
}

// PodWatch registers the function of samples/podwatch.
func PodWatch(r *dsl.Registry) {
	r.Function(dsl.Function{Name: "podwatch.Print", Func: PodPrint, Doc: "logs what happens to a Pod", Needs: []dsl.Need{}})
}

// PodWatchOperator is samples/podwatch/operator.yaml written in Go.
func PodWatchOperator() *dsl.Operator {
	op := dsl.New("podwatch")
	op.Resource("pods.v1", func(pod *dsl.Resource) {
		pod.On([]dsl.Cause{dsl.Create, dsl.Update, dsl.Resume}, "print", PodPrint, dsl.Retries(5), dsl.WithNeeds())
		pod.OnDelete("farewell", PodPrint, dsl.Retries(5), dsl.WithNeeds())
	})
	return op
}
