// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/handwerk-dev/handwerk/dsl"
)

// The limits of an explanation: the characters of a text and of a value, and how many values there are.
const (
	longestClause = 200
	longestValue  = 100
	mostValues    = 12
)

// Explain evaluates a predicate and says how it came to its answer, for people who ask. It compiles the expression once
// more, with a record of each part's value: what runs for events neither pays for it nor keeps it. If absent is set, a
// missing value is the answer false, and not an error.
func (p *Program) Explain(s Scope, absent bool) dsl.Clause {
	out := dsl.Clause{Text: cut(oneLine(p.text), longestClause)}
	if err := p.tooMuch(s); err != nil {
		out.Error = err.Error()
		return out
	}
	x, err := p.recorder()
	if err != nil { // it was compiled before
		out.Error = err.Error()
		return out
	}
	x.activation = x.program.newActivation(s)
	x.activation.hear = x.hear
	v, details, err := x.program.eval(x.activation)
	if details != nil {
		x.state = details.State()
	}
	out.Holds, err = x.program.answer(v, err, x.activation)
	if missing := absent && errors.Is(err, ErrMissing); err != nil && !missing {
		out.Error = err.Error()
	}
	if x.state != nil && v != nil {
		x.holds = out.Holds
		x.decide(x.program.ast.Expr(), v, true)
	}
	out.Values = x.values
	return out
}

// tooMuch returns the error of an expression that costs too much. CEL counts no cost where it keeps values, so a loop runs without a
// record first. Calls alone are bounded by their guards.
func (p *Program) tooMuch(s Scope) error {
	if !p.loops {
		return nil
	}
	a := p.newActivation(s)
	_, _, err := p.eval(a)
	if err == nil {
		return nil
	}
	if err = p.evaluation(err, a); errors.Is(err, errCost) {
		return err
	}
	return nil
}

// recorder is the record of one evaluation, and the explanation that is made from it.
type recorder struct {
	program    *Program
	activation *activation
	state      interpreter.EvalState
	// elements are the elements that loops have come to, by the loop's variable of the part that handles an element.
	elements map[int64]map[string]ref.Val
	// unready says why objects are not ready, by the part that is the object.
	unready map[int64]dsl.Readiness
	// bound are the variables of macros around the current part, with the sources of their values as in
	// [dsl.KnownReads].Values.
	bound map[string][]string
	holds bool
	// told are the lets that are explained already.
	told map[*let]bool
	// values are the result.
	values []dsl.ClauseValue
}

// recorder compiles the program again, so that it records values.
func (p *Program) recorder() (*recorder, error) {
	env, err := p.compiler.env.Extend(cel.EnableMacroCallTracking()) // or calls of macros could not be written
	if err != nil {
		return nil, err
	}
	parsed, issues := env.Parse(p.text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	checked, issues := env.Check(p.compiler.renamed(parsed))
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	x := &recorder{elements: map[int64]map[string]ref.Val{}, unready: map[int64]dsl.Readiness{}, bound: map[string][]string{}, told: map[*let]bool{}}
	tree := checked.NativeRep()
	program, err := env.Program(checked, cel.CustomDecoratorV2(guarded(p.compiler.functions)), cel.CustomDecoratorV2(x.looping(tree)),
		cel.InterruptCheckFrequency(1), cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return nil, err
	}
	again := *p
	again.program, again.ast = program, tree
	x.program = &again
	return x, nil
}

// hear notes why an object is not ready.
func (x *recorder) hear(part int64, why dsl.Readiness) { x.unready[part] = why }

// looping returns a decorator that notes the element that each loop has come to.
func (x *recorder) looping(of *ast.AST) interpreter.InterpretableDecoratorV2 {
	variables := map[int64][]string{}
	ast.PreOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			variables[e.AsComprehension().LoopStep().ID()] = iterated(e.AsComprehension())
		}
	}))
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if names := variables[i.ID()]; names != nil {
			return looped{i, names, x}, nil
		}
		return i, nil
	}
}

// iterated returns the variables of a loop.
func iterated(c ast.ComprehensionExpr) []string {
	if c.HasIterVar2() {
		return []string{c.IterVar(), c.IterVar2()}
	}
	return []string{c.IterVar()}
}

// looped is the part of a loop that handles an element.
type looped struct {
	interpreter.InterpretableV2
	names []string
	x     *recorder
}

// Exec notes the element and handles it.
func (l looped) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	found := map[string]ref.Val{}
	for _, name := range l.names {
		if v, known := frame.ResolveName(name); known {
			found[name] = types.DefaultTypeAdapter.NativeToValue(v)
		}
	}
	l.x.elements[l.ID()] = found
	return l.InterpretableV2.Exec(frame)
}

// Eval is Exec for callers without a frame.
func (l looped) Eval(a cel.Activation) ref.Val { return l.Exec(interpreter.AsFrame(a)) }

// sources returns the sources of the values that a part reads, in the form of [dsl.KnownReads].Values; a variable of the
// configuration, such as item, is its own source.
func (x *recorder) sources(e ast.Expr) (out []string) {
	within := ast.NavigateExpr(x.program.ast, e)
	reads := func(variable string) *reader {
		r := &reader{variable: variable}
		r.visit(within)
		return r
	}
	out = append(valuesOf(reads), x.letSources(e)...)
	for _, name := range x.program.compiler.variables {
		if !slices.Contains(variables(), name) && len(reads(name).paths) > 0 {
			out = append(out, name)
		}
	}
	for name, of := range x.bound {
		if len(reads(name).paths) > 0 {
			out = append(out, of...)
		}
	}
	return out
}

// secret reports whether the value of a part may come from a Secret.
func (x *recorder) secret(e ast.Expr) bool {
	secrets := x.activation.scope.secrets()
	own := func(source string) bool {
		return slices.Contains(x.program.compiler.variables, source) && !slices.Contains(variables(), source)
	}
	sources := x.sources(e)
	return secrets.In(sources) || secrets.Read && slices.ContainsFunc(sources, own)
}

// add adds a part with its value.
func (x *recorder) add(text, value string) {
	one := dsl.ClauseValue{Text: cut(oneLine(text), longestClause), Value: value}
	if len(x.values) < mostValues && !slices.Contains(x.values, one) {
		x.values = append(x.values, one)
	}
}

// cut returns a text of at most so many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}
