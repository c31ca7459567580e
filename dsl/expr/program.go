// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Program is a compiled expression. It is safe for use by several goroutines.
type Program struct {
	source
	program cel.Program
	uses    map[string]bool
	// compiler is the one that made it, and ast what CEL understood, for checks against schemas.
	compiler *Compiler
	ast      *ast.AST
	// predicate: the result must be true or false.
	predicate bool
	// loops: it loops over lists, for longest at most.
	loops   bool
	longest time.Duration
}

// Text returns the expression.
func (p *Program) Text() string { return p.text }

// IsPredicate reports whether the result must be true or false.
func (p *Program) IsPredicate() bool { return p.predicate }

// AST returns what CEL has understood.
func (p *Program) AST() *ast.AST { return p.ast }

// Overloads returns in which forms a function or an operator can be called.
func (p *Program) Overloads(function string) []*decls.OverloadDecl {
	return p.compiler.functions[function].OverloadDecls()
}

// Place returns where a part of the expression stands in it.
func (p *Program) Place(e ast.Expr) Place { return placeOf(p.text, p.ast.SourceInfo(), e) }

// Fault makes an error of issues with the expression, and of what is doubtful in it. There is one at least.
func (p *Program) Fault(issues, doubts []Issue) *Error {
	out := p.fault(issues...)
	out.Doubts = p.fault(doubts...).Issues
	return out
}

// Uses reports whether the expression refers to the variable. A macro that binds a name of its own
// to the variable's counts too.
func (p *Program) Uses(variable string) bool { return p.uses[variable] }

// Eval evaluates an expression and returns its value as JSON has it: maps, slices, text, int64,
// float64, booleans and nil. A time is text as RFC 3339 has it, a duration as in 1h30m0s, bytes are
// base64. An optional value that is not there is [None]. A value that is larger than the scope's Room
// is an error.
func (p *Program) Eval(s Scope) (any, error) {
	a := &activation{scope: s}
	if s.Unready != nil {
		a.hear = p.hear(a, s.Unready)
	}
	out, err := p.eval(a)
	if err != nil {
		return nil, p.evaluation(err, a)
	}
	value, err := plainValue(out, s.room())
	if err != nil && a.secretive() && !errors.Is(err, ErrTooLarge) {
		return nil, errors.New("the result cannot be written" + unshown)
	}
	return value, err
}

// Bool evaluates a predicate.
//
// An error means that there is no answer: a key that is missing, a result that is neither true
// nor false, or an evaluation that costs more than Kubernetes allows one.
func (p *Program) Bool(s Scope) (bool, error) {
	a := &activation{scope: s}
	out, err := p.eval(a)
	if err != nil {
		return false, p.evaluation(err, a)
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the result is %s, want true or false", named(out.Type().TypeName()))
	}
	return bool(holds), nil
}

// Predicate makes a handler's filter of the program. Name is what the author calls it, as in
// "when"; it begins the filter's errors.
func (p *Program) Predicate(name string, params dsl.Params) dsl.Predicate {
	return func(s *dsl.Subject) (bool, error) {
		holds, err := p.Bool(Scope{Subject: s, Params: params})
		if err != nil {
			return false, fmt.Errorf("evaluating %s: %w", name, err)
		}
		return holds, nil
	}
}

var errCost = dsl.Permanent(errors.New("it costs more than one evaluation may (is it a loop over a long list?)"))

// causedError is an error with what it is an instance of, which its text does not say.
type causedError struct {
	error
	cause error
}

func (e *causedError) Unwrap() []error { return []error{e.cause, e.error} }

// unshown is why there are no more words.
const unshown = " (no more is shown, for it may be a Secret's)"

// evaluation puts CEL's errors into words for authors of configurations. Where the expression may read a Secret, it keeps none of
// CEL's words, for CEL quotes values.
func (p *Program) evaluation(err error, a *activation) error {
	if errors.Is(err, errCost) || strings.Contains(err.Error(), "actual cost limit exceeded") {
		return errCost // for good: it would cost as much until what it reads changes
	}
	for _, missing := range []string{"no such key", "no such field", "index out of bounds", "optional.none() dereference"} {
		if strings.Contains(err.Error(), missing) {
			told, found := p.missing(err, a)
			if !found && a.secretive() {
				told = errors.New("it looks for something that is not there" + unshown)
			}
			return &causedError{told, ErrMissing}
		}
	}
	if strings.HasPrefix(err.Error(), "invalid qualifier type") {
		return errors.New("a key is text, a number or true or false, and not what stands in the brackets")
	}
	if strings.HasPrefix(err.Error(), "no such overload") {
		return p.wrongKinds(err)
	}
	if a.secretive() && !a.readingFailed(err) {
		return errors.New(p.failing(err) + " fails" + unshown)
	}
	return err
}

// failing says which function or operator of the expression has failed.
func (p *Program) failing(err error) string {
	if name := p.failed(err); name != "" {
		return FunctionNamed(name)
	}
	return "it"
}

// wrongKinds says which function or operator does not take what it was given.
func (p *Program) wrongKinds(err error) error {
	name := p.failed(err)
	switch name {
	case "":
		return errors.New("a function or an operator does not go with the kinds of its values")
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return fmt.Errorf("%s does not go with the kinds of its values (string(…), int(…) and double(…) convert them)", FunctionNamed(name))
	}
	return fmt.Errorf("%s does not go with the kinds of its values", FunctionNamed(name))
}

// failed returns the function or operator that an error of CEL is about, empty when that is not known.
func (p *Program) failed(err error) (name string) {
	if failed, ok := errors.AsType[*types.Err](err); ok {
		ast.PreOrderVisit(p.ast.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
			if e.ID() == failed.NodeID() && e.Kind() == ast.CallKind {
				name = e.AsCall().FunctionName()
			}
		}))
	}
	return name
}
