// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/handwerk-dev/handwerk/dsl"
)

// LetValues keeps the values of lets, so that evaluations that share it work out each one once. All of them must see the same
// subject, parameters and variables. It is not safe for use by several goroutines.
type LetValues struct{ known map[*let]*letValue }

// letValue is what came of a let.
type letValue struct {
	value ref.Val
	err   error
	// cost is what the evaluation has cost, with that of other lets.
	cost uint64
	// unready are the objects for which ready() was false.
	unready []dsl.Readiness
}

// letError is the error of a let.
type letError struct {
	let *let
	err error
}

// Error names the let and its place.
func (e *letError) Error() string { return e.let.String() + ": " + e.err.Error() }

// Unwrap returns the error of the expression.
func (e *letError) Unwrap() error { return e.err }

// newActivation returns the activation of an evaluation of the program.
func (p *Program) newActivation(s Scope) *activation {
	return &activation{scope: s, program: p, lets: p.compiler.lets, copies: p.copies}
}

// let returns the value of a let. It is evaluated once for all evaluations that share the scope's Lets; each of them counts its
// cost.
func (a *activation) let(l *let) any {
	if v, found := a.known[l.Name]; found {
		return v
	}
	if a.scope.Lets == nil {
		a.scope.Lets = &LetValues{}
	}
	values := a.scope.Lets
	if values.known == nil {
		values.known = map[*let]*letValue{}
	}
	if values.known[l] == nil {
		values.known[l] = a.evaluate(l)
	}
	of := values.known[l]
	a.cost += of.cost
	err := of.err
	if err == nil && a.cost > MostCost {
		err = &letError{l, errCost}
	}
	if a.scope.Unready != nil {
		for _, why := range of.unready {
			a.scope.Unready(why)
		}
	}
	out := of.value
	if err != nil {
		out = types.WrapErr(err) // CEL's activations have no other way to fail
	}
	a.keep(l.Name, out)
	return out
}

// evaluate evaluates a let.
func (a *activation) evaluate(l *let) *letValue {
	out, program := &letValue{}, l.run()
	inner := program.newActivation(a.scope)
	if a.clock == nil {
		a.clock = &clock{}
	}
	inner.clock = a.clock
	inner.scope.Unready = func(why dsl.Readiness) { out.unready = append(out.unready, why) }
	inner.hear = program.hear(inner, inner.scope.Unready)
	value, details, err := program.eval(inner)
	out.value, out.cost = value, inner.cost
	if details != nil && details.ActualCost() != nil {
		out.cost += *details.ActualCost()
	}
	if err != nil {
		out.err = &letError{l, program.evaluation(err, inner)}
	} else if err := l.unfit(value); err != nil {
		out.err = &letError{l, err}
	}
	return out
}

// letFailed returns the error of a let that has failed an evaluation; nil for other errors.
func letFailed(err error) error {
	if failed, is := errors.AsType[*letError](err); is {
		return failed
	}
	return nil
}
