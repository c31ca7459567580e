// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
)

// Branches observes the branches of expressions, for the coverage of tests. It is called when an expression is compiled, for each
// condition of ?: in it. The function that it returns is called with each answer of the condition. The argument
// name is "?:", or the author's name of a predicate, as in [Program.Observed].
type Branches = func(name, condition string) (answered func(holds bool))

// Observed returns a compiler that tells branches about the expressions that it compiles. Nil is the same compiler.
func (c *Compiler) Observed(branches Branches) *Compiler {
	if branches == nil {
		return c
	}
	out := *c
	out.branches, out.lets = branches, c.lets.observed(branches)
	return &out
}

// Observed returns the program of the same predicate, which tells branches about its answers, too. What is the author's
// name for it, as in "includeWhen"; empty if others count its answers, and only conditions in it matter. Nil is the same program.
func (p *Program) Observed(what string, branches Branches) *Program {
	if branches == nil {
		return p
	}
	out, err := p.compiler.Observed(branches).compile(p.source)
	if err != nil { // it was compiled before
		return p
	}
	if out.predicate = p.predicate; what != "" {
		out.answered = branches(what, oneLine(p.text))
	}
	return out
}

// observing returns a decorator that observes conditions.
func (c *Compiler) observing(text string, of *ast.AST) interpreter.InterpretableDecoratorV2 {
	answered := map[int64]func(bool){}
	ast.PreOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Conditional {
			return
		}
		if at := offsetOf(text, of.SourceInfo(), e); !strings.HasPrefix(text[at:], "?") {
			return // a macro has made it
		}
		condition := e.AsCall().Args()[0]
		written, err := parser.Unparse(condition, of.SourceInfo())
		if err != nil {
			written = text
		}
		answered[condition.ID()] = c.branches("?:", oneLine(written))
	}))
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if tell := answered[i.ID()]; tell != nil {
			return observed{i, tell}, nil
		}
		return i, nil
	}
}

// observed is a condition that is observed.
type observed struct {
	interpreter.InterpretableV2

	answered func(bool)
}

// Exec evaluates the condition.
func (o observed) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return o.tell(o.InterpretableV2.Exec(frame))
}

// Eval is Exec without a frame.
func (o observed) Eval(a cel.Activation) ref.Val { return o.tell(o.InterpretableV2.Eval(a)) }

func (o observed) tell(v ref.Val) ref.Val {
	if holds, is := v.(types.Bool); is {
		o.answered(bool(holds))
	}
	return v
}
