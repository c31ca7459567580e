// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// door is the key in the operator's memo that samples/activities use: it says whether the process accepts guests.
const door = "door"

// DoorOpen is a startup: it opens the door before anything is watched.
func DoorOpen(_ context.Context, r *dsl.Request) error {
	r.OperatorMemo.Set(door, true)
	r.Log.Info("the door is open")
	return nil
}

// DoorClose is a cleanup: it closes the door when all handlers have ended.
func DoorClose(_ context.Context, r *dsl.Request) error {
	r.OperatorMemo.Set(door, false)
	r.Log.Info("the door is closed")
	return nil
}

// DoorFollow opens or closes the door as a ConfigMap says.
func DoorFollow(_ context.Context, r *dsl.Request) error {
	state, _ := dsl.Path{"data", door}.In(r.Object.Object)
	r.OperatorMemo.Set(door, state == "open")
	return nil
}

// DoorReady is a probe: the process is not ready while the door is closed.
func DoorReady(_ context.Context, r *dsl.Request) error {
	if open, _ := r.OperatorMemo.Get(door); open != true {
		return errors.New("the door is closed")
	}
	return nil
}

// Doors registers the functions of samples/activities.
func Doors(r *actions.Registry) {
	for _, f := range []dsl.Function{
		{Name: "door.Open", Func: DoorOpen, Doc: "opens the door of the process"},
		{Name: "door.Close", Func: DoorClose, Doc: "closes it"},
		{Name: "door.Ready", Func: DoorReady, Doc: "fails while it is closed: a probe"},
		{Name: "door.Follow", Func: DoorFollow, Doc: "does with it what a ConfigMap says"},
	} {
		f.Needs = []dsl.Need{}
		r.Function(f)
	}
}
