// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"crypto/rand"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// generate is the function that makes random texts.
const generate = "generate"

// generated is the name by which a call of generate() finds its listener. Expressions cannot use this name.
const generated = "@generated"

// Generating returns a compiler of expressions that may have generate(). Check their templates with [Template.Once].
func (c *Compiler) Generating() *Compiler {
	out := *c
	out.generates = true
	return &out
}

// Generates reports whether an expression of the template has generate().
func (t *Template) Generates() bool {
	return slices.ContainsFunc(t.Programs(), func(p *Program) bool { return generation(p.ast.Expr()) != nil })
}

// misplacedGenerate is the message for a generate() in an expression whose value is kept nowhere.
const misplacedGenerate = "generate() makes a value once, so it is only for a field that keeps it: in the template of a child as " +
	"current.secret.?data.?password.orValue(base64(generate(24))), in set as self.?status.?token.orValue(generate(24))"

// generating declares the function.
func generating() cel.EnvOption {
	return cel.Function(generate, cel.Overload("generate_int", []*cel.Type{cel.IntType}, cel.StringType, cel.UnaryBinding(makeText)))
}

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	// fair is the greatest multiple of the number of characters that a byte can hold: bytes from there on would make
	// some characters more likely than others.
	fair = 256 / len(alphanumeric) * len(alphanumeric)
)

// makeText returns a random text of letters and digits.
func makeText(n ref.Val) ref.Val {
	count := int64(n.(types.Int)) // CEL calls it only with this
	if count < 1 || count > mostLetters {
		return types.NewErr("generate(): want 1 to %d characters", mostLetters)
	}
	out := make([]byte, 0, count)
	random := make([]byte, count)
	for len(out) < int(count) {
		_, _ = rand.Read(random) // it never returns an error
		for _, b := range random {
			if int(b) < fair && len(out) < int(count) {
				out = append(out, alphanumeric[int(b)%len(alphanumeric)])
			}
		}
	}
	return types.String(out)
}

// generateCall is a call of generate() that tells a listener.
type generateCall struct{ interpreter.InterpretableCall }

// heardGenerate makes calls of generate() tell that they have made a value.
func heardGenerate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, is := i.(interpreter.InterpretableCall); is && call.Function() == generate {
		return generateCall{call}, nil
	}
	return i, nil
}

// Exec evaluates the call.
func (c generateCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	out := c.InterpretableCall.Exec(frame)
	if heard, listens := frame.ResolveName(generated); listens && !types.IsUnknownOrError(out) {
		heard.(func())()
	}
	return out
}

// Eval is Exec for callers without a frame.
func (c generateCall) Eval(a cel.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// generation returns the first call of generate() in an expression, or nil.
func generation(e ast.Expr) (call ast.Expr) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if call == nil && e.Kind() == ast.CallKind && e.AsCall().FunctionName() == generate {
			call = e
		}
	}))
	return call
}
