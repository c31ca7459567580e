// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package handlers has the stock actions, one in each file: what handlers in YAML can do without Go code. The handlers of
// a Foo show how handlers are written in Go. compose.go and foreach.go run the steps and entries of a handler.
package handlers

import (
	"sync"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	keep "github.com/handwerk-dev/handwerk/handlers/apply"
)

// compilerOf returns the compiler of expressions for actions.
type compilerOf func() (*expr.Compiler, error)

// Standard returns a registry with the stock actions and the functions of a Foo. Programs add their own functions to it.
func Standard() *actions.Registry {
	r := actions.NewRegistry()
	cel := sync.OnceValues(expr.New) // one compiler for all, made for the first expression

	// The actions, and what runs several of them.
	r.Compose(composer{})
	r.Action(call(cel))
	r.Action(set(cel))
	r.Action(event(cel))
	r.Action(logLine(cel))
	r.Action(remove(cel))
	r.Action(apply(cel))
	r.Action(patch(cel))

	// The functions for call.
	Foo(r)

	return r
}

// apply keeps children as templates say.
func apply(cel compilerOf) actions.Action { return keep.Action(cel) }
