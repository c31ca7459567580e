// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package door has the functions of samples/activities.
package door

import (
	"context"
	"errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// key is the key in the operator's memo. Its value says whether the process accepts guests.
const key = "door"

// Open is a startup: it opens the door before anything is watched.
func Open(_ context.Context, r *dsl.Request) error {
	r.OperatorMemo.Set(key, true)
	r.Log.Info("the door is open")
	return nil
}

// Close is a cleanup: it closes the door when all handlers have ended.
func Close(_ context.Context, r *dsl.Request) error {
	r.OperatorMemo.Set(key, false)
	r.Log.Info("the door is closed")
	return nil
}

// Follow opens or closes the door as a ConfigMap says.
func Follow(_ context.Context, r *dsl.Request) error {
	state, _ := dsl.Path{"data", key}.In(r.Object.Object)
	r.OperatorMemo.Set(key, state == "open")
	return nil
}

// Ready is a probe: the process is not ready while the door is closed.
func Ready(_ context.Context, r *dsl.Request) error {
	if open, _ := r.OperatorMemo.Get(key); open != true {
		return errors.New("the door is closed")
	}
	return nil
}

// Functions registers the functions.
func Functions(r *actions.Registry) {
	for _, f := range []dsl.Function{
		{Name: "door.Open", Func: Open, Doc: "opens the door of the process"},
		{Name: "door.Close", Func: Close, Doc: "closes it"},
		{Name: "door.Ready", Func: Ready, Doc: "fails while it is closed: a probe"},
		{Name: "door.Follow", Func: Follow, Doc: "does with it what a ConfigMap says"},
	} {
		f.Needs = []dsl.Need{}
		r.Function(f)
	}
}
