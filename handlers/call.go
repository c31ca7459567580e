// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// call calls a Go function that is registered by name, with the handler's parameters.
func call(cel compilerOf) actions.Action {
	return actions.Action{
		Name:   "call",
		Doc:    "Call a Go function, registered by name. Its parameters stand under with.",
		Config: func() any { return new(string) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			return buildCall(cel, b, *config.(*string))
		},
	}
}

func buildCall(cel compilerOf, b actions.Build, name string) (actions.Built, error) {
	function, found := b.Registry.LookupFunction(name)
	wrong := unknownFunction(name, b.Registry.FunctionsThat(func(f dsl.Function) bool { return wrongKind(f, b.Daemon) == nil }))
	if found {
		wrong = callable(function, b)
	}
	var built actions.Built
	var err error
	switch {
	case b.Daemon:
		built, err = buildDaemon(b, function)
	case b.Params != nil && hasExpression(map[string]any(b.Params)):
		built, err = computedParams(cel, b, function)
	case b.Params != nil:
		built = actions.Built{Func: withParams(function.Func, b.Params), Needs: function.Needs}
	default:
		built = actions.Built{Func: function.Func, Needs: function.Needs}
	}
	if err := errors.Join(slices.Concat(errorsIn(wrong), errorsIn(err))...); err != nil {
		return actions.Built{}, err
	}
	if !b.Daemon {
		built.Calls = makersOf(function, b.ID)
	}
	return built, nil
}

// callable returns an error if a handler cannot call a function with its parameters.
func callable(f dsl.Function, b actions.Build) error {
	if misfit := wrongKind(f, b.Daemon); misfit != nil {
		return misfit
	}
	faults := errorsIn(checkParams(f, b.Params))
	if lacks := f.LeftOut(b.Kept); lacks != nil && !b.ResourceWide {
		faults = append(faults, &shape.Misfit{Path: []string{"call"}, Message: lacks.Error()})
	}
	return errors.Join(faults...)
}

// makersOf returns the names under which a function makes children for a handler; nil if they are not known.
func makersOf(f dsl.Function, handler string) []string {
	if f.Makes == nil {
		return nil
	}
	out := []string{handler}
	for _, name := range f.Makes {
		out = append(out, handler+"."+name)
	}
	return out
}

// wrongKind returns an error if a handler or a daemon calls a function that is not for it.
func wrongKind(f dsl.Function, daemon bool) error {
	switch {
	case f.Func == nil && f.Daemon == nil: // a stand-in of a case has all three
		return &shape.Misfit{Path: []string{"call"}, Message: f.Name + " is for rules about requests: it stands under validate or mutate"}
	case daemon && f.Daemon == nil:
		return &shape.Misfit{Path: []string{"call"}, Message: f.Name + " is for handlers, and not for daemons"}
	case !daemon && f.Func == nil:
		return &shape.Misfit{Path: []string{"call"}, Message: f.Name + " is a daemon: it stands under daemons, and not under handlers"}
	}
	return nil
}

// buildDaemon builds a daemon. Each run gets its own copy of the parameters.
func buildDaemon(b actions.Build, f dsl.Function) (actions.Built, error) {
	if hasExpression(map[string]any(b.Params)) {
		return actions.Built{}, &shape.Misfit{Path: []string{"with"}, Message: "expressions are not worked out for a daemon, which sees the object change"}
	}
	return actions.Built{Needs: f.Needs, Daemon: func(ctx context.Context, r *dsl.DaemonRequest) error {
		own := *r
		own.Params = runtime.DeepCopyJSON(b.Params)
		err := f.Daemon(ctx, &own)
		r.Patch = own.Patch // Flush replaces it
		return err
	}}, nil
}

// computedParams computes the parameters for each call, and checks the results of their expressions.
func computedParams(cel compilerOf, b actions.Build, function dsl.Function) (actions.Built, error) {
	params := map[string]any(b.Params)
	b.Params = nil // the parameters cannot refer to themselves
	w, err := newWriter(cel, b)
	if err != nil {
		return actions.Built{}, err
	}
	t := w.template(params, nil, "with")
	if err := errors.Join(w.faults...); err != nil {
		return actions.Built{}, err
	}
	reads := w.reads
	reads.Only, reads.Complete = false, false // the reads of the function are not known
	return actions.Built{Checks: w.checks, Needs: function.Needs, Reads: reads, Func: func(ctx context.Context, r *dsl.Request) error {
		value, err := t.Render(w.scope(r.Subject))
		if err != nil {
			return fmt.Errorf("calling %s: %w", function.Name, err)
		}
		tree, _ := value.(map[string]any)
		if err := checkParams(function, tree); err != nil {
			if r.Secrets.Read {
				err = unfit(err)
			}
			return dsl.Permanent(fmt.Errorf("calling %s: %w", function.Name, err))
		}
		return runWith(ctx, function.Func, r, tree)
	}}, nil
}

// unfit names the parameters that do not fit, without their values.
func unfit(err error) error {
	var at []string
	for _, one := range errorsIn(err) {
		if misfit, is := errors.AsType[*shape.Misfit](one); is {
			at = append(at, strings.Join(misfit.Path, "."))
		}
	}
	return fmt.Errorf("%s: %s does not fit", strings.Join(at, ", "), dsl.Unshown)
}

// errorsIn returns the errors that are joined in one.
func errorsIn(err error) []error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return joined.Unwrap()
	}
	return []error{err}
}

// hasExpression reports whether a plain value contains a ${…}.
func hasExpression(value any) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, "${")
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), hasExpression)
	case []any:
		return slices.ContainsFunc(value, hasExpression)
	}
	return false
}

// withParams gives each call its own copy of the parameters, because calls run in parallel.
func withParams(fn dsl.Func, params dsl.Params) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		return runWith(ctx, fn, r, runtime.DeepCopyJSON(params))
	}
}

// runWith runs a function with parameters, and copies back the fields of the request that it has set.
func runWith(ctx context.Context, fn dsl.Func, r *dsl.Request, params dsl.Params) error {
	own := *r
	own.Params = params
	defer func() { r.Step, r.Again = own.Step, own.Again }()
	return fn(ctx, &own)
}

func unknownFunction(name string, known []string) error {
	message := fmt.Sprintf("unknown function %q", name)
	if _, near := words.Nearest(name, known); near {
		message += " (" + words.Hint(name, known) + ")"
	}
	if len(known) == 0 {
		message += "; none is registered"
	} else {
		message += "; registered are " + strings.Join(known, ", ")
	}
	return &shape.Misfit{Path: []string{"call"}, Message: message}
}
