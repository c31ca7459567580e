// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"context"
	"errors"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	impl "github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// What one call may come to. CEL counts what a call has cost when the call has returned, which is too late where short values of
// an object make it run for minutes, or give more than the process may have.
const (
	// mostSteps bounds comparisons and elements, as Kubernetes bounds the cost of an expression.
	mostSteps = 1_000_000
	// mostText bounds the text that a call gives, in bytes.
	mostText = 10 << 20
	// mostPairs bounds comparisons of letters, which are fast.
	mostPairs = 100_000_000
	// mostPattern bounds to how many instructions a pattern is compiled: each takes some 250 bytes.
	mostPattern = 20_000
	// The longest text of a quantity, and its largest exponent: a quantity is written out to be compared.
	longestQuantity = 100
	mostExponent    = 100
)

// longestLoop is how long an evaluation may take that loops over lists. CEL leaves out part of what a loop costs, and what it does
// itself in a loop grows with the square of the list.
const longestLoop = 10 * time.Second

// clock says when the loops of an evaluation must have ended, those of lets, too. It runs from the first loop on.
type clock struct{ ends time.Time }

// eval evaluates the program. It ends loops that take too long. The program and the lets that it uses share the limit of the cost.
func (p *Program) eval(a *activation) (ref.Val, *cel.EvalDetails, error) {
	out, details, err := p.run(a)
	if err != nil || a.cost == 0 || details == nil || details.ActualCost() == nil {
		return out, details, err
	}
	if a.cost+*details.ActualCost() > MostCost {
		return nil, details, errCost
	}
	return out, details, nil
}

// run is eval without the cost of lets.
func (p *Program) run(a *activation) (ref.Val, *cel.EvalDetails, error) {
	if !p.loops {
		return p.program.Eval(a)
	}
	if a.clock == nil {
		a.clock = &clock{}
	}
	if a.clock.ends.IsZero() {
		a.clock.ends = time.Now().Add(p.longest)
	}
	ctx, cancel := context.WithDeadline(context.Background(), a.clock.ends) //nolint:forbidigo // an evaluation sends no request, and no caller passes a context
	defer cancel()
	out, details, err := p.program.ContextEval(ctx, a)
	if errors.Is(err, interpreter.InterruptError{}) {
		err = errCost
	}
	return out, details, err
}

// loops reports whether an expression has a macro that loops.
func loops(of *ast.AST) (yes bool) {
	ast.PreOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) { yes = yes || e.Kind() == ast.ComprehensionKind }))
	return yes
}

// guards say what calls give instead of what they would come to, nil where they may be made, by function.
var guards = map[string]func(args []ref.Val) ref.Val{
	"replace":         bounded(func(a []ref.Val) bool { return replaced(a) > mostText }),
	"join":            bounded(func(a []ref.Val) bool { return joined(a) > mostText }),
	"flatten":         bounded(func(a []ref.Val) bool { return flattened(a[0], mostSteps) > mostSteps }),
	"distinct":        bounded(func(a []ref.Val) bool { return length(a[0])*length(a[0]) > mostSteps }),
	"sets.contains":   bounded(func(a []ref.Val) bool { return length(a[0])*length(a[1]) > mostSteps }),
	"sets.equivalent": bounded(func(a []ref.Val) bool { return length(a[0])*length(a[1]) > mostSteps }),
	"sets.intersects": bounded(func(a []ref.Val) bool { return length(a[0])*length(a[1]) > mostSteps }),
	"indexOf":         bounded(func(a []ref.Val) bool { return len(text(a[0]))*len(text(a[1])) > mostPairs }),
	"lastIndexOf":     bounded(func(a []ref.Val) bool { return len(text(a[0]))*len(text(a[1])) > mostPairs }),
	"matches":         bounded(searched),
	"find":            bounded(searched),
	"findAll":         bounded(searched),
	"quantity": func(a []ref.Val) ref.Val {
		if !short(text(a[0])) {
			return types.NewErr("quantity(): no quantity has as many digits, or as large an exponent")
		}
		return nil
	},
	"isQuantity": func(a []ref.Val) ref.Val {
		if !short(text(a[0])) {
			return types.False
		}
		return nil
	},
}

// bounded makes a guard of what says whether a call comes to too much.
func bounded(large func([]ref.Val) bool) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		if large(args) {
			return types.WrapErr(errCost)
		}
		return nil
	}
}

// guarded returns a decorator that asks guards before calls.
func guarded(all map[string]*decls.FunctionDecl) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, is := i.(interpreter.InterpretableCall)
		if !is || guards[call.Function()] == nil || len(call.Args()) == 0 || settled(call) {
			return i, nil
		}
		bindings, err := all[call.Function()].Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			if b.Operator == call.Function() { // the one that finds the overload for its arguments
				return guardedCall{call, guards[call.Function()], b}, nil
			}
		}
		return i, nil
	}
}

// settled reports whether a call searches for a pattern that the author has written, which is compiled once.
func settled(call interpreter.InterpretableCall) bool {
	_, written := call.Args()[len(call.Args())-1].(interpreter.InterpretableConst)
	if len(call.Args()) > 1 {
		_, written = call.Args()[1].(interpreter.InterpretableConst)
	}
	return written && slices.Contains([]string{"matches", "find", "findAll"}, call.Function())
}

// guardedCall is a call of a function that has a guard.
type guardedCall struct {
	interpreter.InterpretableCall
	guard func([]ref.Val) ref.Val
	bound *impl.Overload
}

// Exec is the call.
func (c guardedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, 0, len(c.Args()))
	for _, arg := range c.Args() {
		v := arg.Exec(frame)
		if types.IsUnknownOrError(v) {
			return v
		}
		args = append(args, v)
	}
	out := c.guard(args)
	if out == nil {
		out = c.call(args)
	}
	return types.LabelErrNode(c.ID(), out)
}

// Eval is Exec for callers without a frame.
func (c guardedCall) Eval(a cel.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

func (c guardedCall) call(args []ref.Val) ref.Val {
	switch {
	case len(args) == 1 && c.bound.Unary != nil:
		return c.bound.Unary(args[0])
	case len(args) == 2 && c.bound.Binary != nil:
		return c.bound.Binary(args[0], args[1])
	case c.bound.Function != nil:
		return c.bound.Function(args...)
	}
	return types.NewErr("no such overload: %s", c.Function())
}

// text is an argument that is text, and empty for any other.
func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// length is how many elements a list has.
func length(v ref.Val) int {
	list, is := v.(traits.Lister)
	if !is {
		return 0
	}
	n, _ := list.Size().(types.Int)
	return int(n)
}

// replaced is how long the result of replace is at most.
func replaced(a []ref.Val) int {
	if len(a) < 3 {
		return 0
	}
	from, to := text(a[0]), text(a[2])
	times := len(from) + 1
	if old := text(a[1]); old != "" {
		times = len(from) / len(old)
	}
	if len(a) > 3 {
		if most, is := a[3].(types.Int); is && most >= 0 {
			times = min(times, int(most))
		}
	}
	return len(from) + times*len(to)
}

// joined is how long the result of join is.
func joined(a []ref.Val) (out int) {
	if len(a) > 1 {
		out = length(a[0]) * len(text(a[1]))
	}
	list, is := a[0].(traits.Lister)
	for i := 0; is && i < length(list) && out <= mostText; i++ {
		out += len(text(list.Get(types.Int(i))))
	}
	return out
}

// flattened is how many elements are in a list of lists, as far as they are counted.
func flattened(v ref.Val, most int) (out int) {
	list, is := v.(traits.Lister)
	if !is {
		return 1
	}
	for i := 0; i < length(list) && out <= most; i++ {
		out += flattened(list.Get(types.Int(i)), most-out)
	}
	return out
}

// searched reports whether it would take long to compile a pattern, or to search for it.
func searched(a []ref.Val) bool {
	pattern := text(a[len(a)-1])
	if len(a) > 1 {
		pattern = text(a[1])
	}
	if len(pattern) > mostPattern {
		return true
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false // the call says what is wrong with it
	}
	size := instructions(parsed)
	return size > mostPattern || size*len(text(a[0])) > mostPairs
}

// instructions is about how many a pattern is compiled to.
func instructions(re *syntax.Regexp) (out int) {
	out = max(1, len(re.Rune))
	for _, sub := range re.Sub {
		out += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		out *= max(1, re.Min, re.Max)
	}
	return out
}

// short reports whether a text may be that of a quantity.
func short(quantity string) bool {
	at := strings.LastIndexAny(quantity, "eE")
	if len(quantity) > longestQuantity || at < 0 {
		return len(quantity) <= longestQuantity
	}
	exponent, err := strconv.Atoi(quantity[at+1:])
	return err != nil && !errors.Is(err, strconv.ErrRange) || err == nil && exponent >= -mostExponent && exponent <= mostExponent
}
