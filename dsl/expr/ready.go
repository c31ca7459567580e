// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ready evaluates by the rules of kstatus whether an object is ready. The value is a boolean or an error.
func ready(v ref.Val) (dsl.Readiness, ref.Val) {
	var object map[string]any
	if v != types.NullValue {
		value, err := plainValue(v, NewRoom(mostRendered))
		if err != nil {
			return dsl.Readiness{}, types.NewErr("ready(): %v", err)
		}
		var is bool
		if object, is = value.(map[string]any); !is {
			return dsl.Readiness{}, types.NewErr("ready(): want one object, found %s", kindOf(value))
		}
		withGeneration(object, v)
	}
	out, err := dsl.ReadinessOf(&unstructured.Unstructured{Object: object})
	if err != nil {
		return out, types.NewErr("ready(): %v", err)
	}
	return out, types.Bool(out.Ready)
}

// withGeneration sets the generation of a copy of an object, which leaves it out. The status says which one its controller has seen.
func withGeneration(object map[string]any, of ref.Val) {
	metadata, is := object["metadata"].(map[string]any)
	if !is {
		return
	}
	for _, key := range []string{"metadata", "generation"} {
		from, isMap := of.(traits.Mapper)
		if !isMap {
			return
		}
		if of, is = from.Find(types.String(key)); !is {
			return
		}
	}
	if generation, isInt := of.(types.Int); isInt {
		metadata["generation"] = int64(generation)
	}
}

// unready is the name by which a call of ready() finds the listener. Expressions cannot use this name.
const unready = "@unready"

// readyCall is a call of ready() that reports why an object is not ready.
type readyCall struct{ interpreter.InterpretableCall }

// heardReady makes calls of ready() report why an object is not ready.
func heardReady(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, is := i.(interpreter.InterpretableCall); is && call.Function() == "ready" && len(call.Args()) == 1 {
		return readyCall{call}, nil
	}
	return i, nil
}

// Exec evaluates the call.
func (c readyCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	object := c.Args()[0]
	v := object.Exec(frame)
	if types.IsUnknownOrError(v) {
		return v
	}
	why, out := ready(v)
	if report, listens := frame.ResolveName(unready); listens && out == types.False {
		report.(func(int64, dsl.Readiness))(object.ID(), why)
	}
	return types.LabelErrNode(c.ID(), out)
}

// Eval is Exec for callers without a frame.
func (c readyCall) Eval(a cel.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// hear returns a listener that reports why an object from a part of the expression is not ready.
func (p *Program) hear(a *activation, report func(dsl.Readiness)) func(int64, dsl.Readiness) {
	return func(part int64, why dsl.Readiness) {
		if why.Reason == dsl.ReasonNotFound {
			ast.PreOrderVisit(p.ast.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
				if e.ID() != part {
					return
				}
				text, err := parser.Unparse(e, p.ast.SourceInfo())
				if err != nil {
					return
				}
				if e.Kind() == ast.SelectKind && e.AsSelect().Operand().Kind() == ast.IdentKind {
					text += a.absent(e.AsSelect().Operand().AsIdent(), e.AsSelect().FieldName())
				}
				why.Message = text + " is not there"
			}))
		}
		report(why)
	}
}
