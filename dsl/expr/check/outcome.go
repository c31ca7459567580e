// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/google/cel-go/common/ast"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// handlerFields are the outcomes of handlers by their ids.
type handlerFields struct{ ids []string }

func (f *handlerFields) field(id string) (valueType, bool) {
	return valueType{kinds: isMap, fields: &outcomeFields{}}, slices.Contains(f.ids, id)
}

func (f *handlerFields) any() valueType  { return valueType{kinds: isMap, fields: &outcomeFields{}} }
func (f *handlerFields) names() []string { return slices.Sorted(slices.Values(f.ids)) }
func (f *handlerFields) what() string    { return "handler" }

// outcomeFields are the fields of an outcome. All outcomes have the same ones.
type outcomeFields struct{ _ byte } // not empty: pointers to empty values may be equal

func (f *outcomeFields) field(name string) (valueType, bool) {
	kind, found := map[string]kinds{"state": isText, "message": isText, "attempts": isInt, "nextTry": isTime}[name]
	if !found {
		return unknown(), false
	}
	return only(kind), true
}

func (f *outcomeFields) any() valueType  { return unknown() }
func (f *outcomeFields) names() []string { return dsl.OutcomeFields() }
func (f *outcomeFields) what() string    { return "field" }

// isState reports whether a part is the state in an outcome, as in handlers.apply.state.
func (in *inspector) isState(e ast.Expr, s *scope) bool {
	outcome, field, how := expr.Selection(e)
	if how == "" || field != "state" {
		return false
	}
	handlers, _, how := expr.Selection(outcome)
	return how != "" && in.isVariable(handlers, expr.Handlers, s)
}
