// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package handlers holds the stock actions, one a file: what a handler that is written in YAML
// can do without any Go.
package handlers

import (
	"sync"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	keep "github.com/handwerk-dev/handwerk/handlers/apply"
)

// compilerOf gives the actions their expression compiler.
type compilerOf func() (*expr.Compiler, error)

// Standard returns a registry of the stock actions and of the functions in this package. Programs
// with functions of their own add them to it.
func Standard() *actions.Registry {
	r := actions.NewRegistry()
	cel := sync.OnceValues(expr.New) // one compiler for all, made when an expression is first met

	// The actions.
	r.Action(call(cel))
	r.Action(set(cel))
	r.Action(event(cel))
	r.Action(logLine(cel))
	r.Action(remove(cel))
	r.Action(apply(cel))

	// The functions that call finds by name, a line for each file that has some.
	Foo(r)
	FooBar(r)
	Etcd(r)
	PodWatch(r)
	Probes(r)
	VolumeClaims(r)
	Guests(r)
	Fleets(r)
	Attempts(r)
	Doors(r)

	return r
}

// apply keeps children as templates say.
func apply(cel compilerOf) actions.Action { return keep.Action(cel) }
