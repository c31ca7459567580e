// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Program is a compiled expression. It is safe for use by several goroutines.
type Program struct {
	source
	program cel.Program
	uses    map[string]bool
	// compiler is the compiler of the program, and ast is CEL's tree. full has the tree with lets written out, for what is known
	// before it runs; direct are the lets that it uses.
	compiler *Compiler
	ast      *ast.AST
	full     expanded
	direct   []letUse
	// predicate: the result must be true or false.
	predicate bool
	// moment: the result must be a time, or none. Span: it must be a duration, or none.
	moment, span bool
	// answered gets the answers of a predicate. Nil means that they are not observed.
	answered func(holds bool)
	// copies are the variables of which it may copy metadata as a whole; see [copied].
	copies map[string]bool
	// loops: it loops over lists, for longest at most.
	loops   bool
	longest time.Duration
}

// Text returns the expression.
func (p *Program) Text() string { return p.text }

// IsPredicate reports whether the result must be true or false.
func (p *Program) IsPredicate() bool { return p.predicate }

// IsMoment reports whether the result must be a time, or none.
func (p *Program) IsMoment() bool { return p.moment }

// IsSpan reports whether the result must be a duration, or none.
func (p *Program) IsSpan() bool { return p.span }

// AST returns CEL's tree, with lets written out.
func (p *Program) AST() *ast.AST { return p.full.ast }

// Overloads returns the declarations of a function or an operator.
func (p *Program) Overloads(function string) []*decls.OverloadDecl {
	return p.compiler.functions[function].OverloadDecls()
}

// Fault makes an error of issues and doubts of the expression. There must be at least one.
func (p *Program) Fault(issues, doubts []Issue) *Error {
	out := p.fault(issues...)
	out.Doubts = p.fault(doubts...).Issues
	return out
}

// Uses reports whether the expression uses the variable. A macro that binds the same name counts, too.
func (p *Program) Uses(variable string) bool { return p.uses[variable] }

// UsesOnly reports whether the expression refers to no variables but these.
func (p *Program) UsesOnly(variables ...string) bool {
	return !slices.ContainsFunc(p.compiler.variables, func(name string) bool { return p.Uses(name) && !slices.Contains(variables, name) })
}

// Eval evaluates an expression and returns its value in JSON form: maps, slices, text, int64, float64, booleans and
// nil. A time is text in RFC 3339, a duration text as 1h30m0s, and bytes are text in base64. An absent optional is
// [None]. A value that exceeds the scope's Room is an error.
func (p *Program) Eval(s Scope) (any, error) {
	a := p.newActivation(s)
	if s.Unready != nil {
		a.hear = p.hear(a, s.Unready)
	}
	out, _, err := p.eval(a)
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
// An error means that there is no answer: a missing key, a result that is neither true nor false, or an evaluation
// that exceeds the cost limit of Kubernetes.
func (p *Program) Bool(s Scope) (bool, error) {
	a := p.newActivation(s)
	out, _, err := p.eval(a)
	holds, err := p.answer(out, err, a)
	if err == nil && p.answered != nil {
		p.answered(holds)
	}
	return holds, err
}

// answer returns the answer of an evaluation.
func (p *Program) answer(out ref.Val, err error, a *activation) (bool, error) {
	if err != nil {
		return false, p.evaluation(err, a)
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the result is %s, want true or false", named(out.Type().TypeName()))
	}
	return bool(holds), nil
}

// Predicate makes the program a handler's filter. Name is the author's name for it, as in "when"; errors begin with
// it.
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

// causedError is an error with a cause that its text does not contain.
type causedError struct {
	error
	cause error
}

func (e *causedError) Unwrap() []error { return []error{e.cause, e.error} }

// unshown says why the message is cut.
const unshown = " (no more is shown, for it may be a Secret's)"

// evaluation rewrites CEL's errors for authors of configurations. If the expression may read a Secret, it drops
// CEL's text, because CEL quotes values.
func (p *Program) evaluation(err error, a *activation) error {
	if failed := letFailed(err); failed != nil {
		return failed
	}
	if errors.Is(err, errCost) || strings.Contains(err.Error(), "actual cost limit exceeded") {
		return errCost // for good: it would cost as much until what it reads changes
	}
	for _, missing := range []string{"no such key", "no such field", "index out of bounds", "optional.none() dereference"} {
		if strings.Contains(err.Error(), missing) {
			from, reason := p.missing(err, a)
			switch from {
			case Related:
				return &causedError{reason, ErrMissingRelated}
			case Self, Params:
				return &causedError{reason, ErrMissingOwn}
			}
			if from == "" && a.secretive() {
				reason = errors.New("it looks for something that is not there" + unshown)
			}
			return &causedError{reason, ErrMissing}
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

// failing names the function or operator that has failed.
func (p *Program) failing(err error) string {
	if name := p.failed(err); name != "" {
		return FunctionNamed(name)
	}
	return "it"
}

// wrongKinds names the function or operator that does not accept its arguments.
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

// failed returns the function or operator of an error of CEL; empty if that is not known.
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
