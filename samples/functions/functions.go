// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package functions has the functions of all samples in one registry, for tests that read every sample. Each sample that has
// functions is a program of its own, with its own functions alone.
package functions

import (
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/activities/door"
	"github.com/handwerk-dev/handwerk/samples/daemon/probe"
	"github.com/handwerk-dev/handwerk/samples/defaults/caches"
	"github.com/handwerk-dev/handwerk/samples/ephemeral-volume-claim/volumes"
	"github.com/handwerk-dev/handwerk/samples/errors/attempts"
	"github.com/handwerk-dev/handwerk/samples/etcd/members"
	"github.com/handwerk-dev/handwerk/samples/foobar/foobar"
	"github.com/handwerk-dev/handwerk/samples/memo/guests"
	"github.com/handwerk-dev/handwerk/samples/podwatch/podwatch"
	"github.com/handwerk-dev/handwerk/samples/sub-handlers/fleets"
)

// All returns for the name of each package the function that registers its functions.
func All() map[string]func(*actions.Registry) {
	return map[string]func(*actions.Registry){
		"attempts": attempts.Functions,
		"caches":   caches.Functions,
		"door":     door.Functions,
		"fleets":   fleets.Functions,
		"foobar":   foobar.Functions,
		"guests":   guests.Functions,
		"members":  members.Functions,
		"podwatch": podwatch.Functions,
		"probe":    probe.Functions,
		"volumes":  volumes.Functions,
	}
}

// Registry returns a registry with the stock actions and the functions of all samples.
func Registry() *actions.Registry {
	r := handlers.Standard()
	for _, register := range All() {
		register(r)
	}
	return r
}
