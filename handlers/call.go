// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
)

// call runs a Go function that is registered by name, with the handler's parameters.
func call() dsl.Action {
	return dsl.Action{
		Name:   "call",
		Doc:    "Call a Go function, registered by name. Its parameters stand under with.",
		Config: func() any { return new(string) },
		Build: func(b dsl.Build, config any) (dsl.Built, error) {
			fn, err := buildCall(b, *config.(*string))
			return dsl.Built{Func: fn}, err
		},
	}
}

func buildCall(b dsl.Build, name string) (dsl.Func, error) {
	function, found := b.Registry.LookupFunction(name)
	if !found {
		return nil, unknownFunction(name, b.Registry.Functions())
	}
	if err := checkParams(function, b.Params); err != nil {
		return nil, err
	}
	if b.Params == nil {
		return function.Func, nil
	}
	return withParams(function.Func, b.Params), nil
}

// withParams gives each call its own copy of the parameters: calls run side by side.
func withParams(fn dsl.Func, params dsl.Params) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		own := *r
		own.Params = runtime.DeepCopyJSON(params)
		return fn(ctx, &own)
	}
}

func unknownFunction(name string, known []string) error {
	message := fmt.Sprintf("unknown function %q", name)
	if meant, near := dsl.Nearest(name, known); near {
		message += fmt.Sprintf(" (did you mean %q?)", meant)
	}
	if len(known) == 0 {
		message += "; none is registered"
	} else {
		message += "; registered are " + strings.Join(known, ", ")
	}
	return &dsl.ConfigError{Path: []string{"call"}, Message: message}
}
