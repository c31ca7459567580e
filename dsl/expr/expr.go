// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package expr compiles and evaluates the CEL expressions of a configuration.
//
// The language is the one that Kubernetes itself uses in admission policies and CRDs, with the
// same libraries and the same limit on what one evaluation may cost. The variables are self (the
// object), old (its essence as it was handled last, null when that is not kept), diff (a list of
// {op, path, old, new}), cause (a string), params (the handler's parameters), now (the time of the
// pass), children (by the names they are made under: an object, or a list where there may be
// several) and related (by the names of the relations, in the same form). A child or related object
// that is not there is an empty map.
package expr

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Compiler compiles expressions. All programs of one compiler share its environment. It is safe
// for use by several goroutines.
type Compiler struct {
	env  *cel.Env
	more []string
}

// The variables of an expression.
const (
	Self   = "self"
	Old    = "old"
	Diff   = "diff"
	Cause  = "cause"
	Params = "params"
	Now    = "now"

	Children = "children"
	Related  = "related"
)

// New returns a compiler.
func New() (*Compiler, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	object := cel.MapType(cel.StringType, cel.DynType)
	env, err := base.NewExpressionsEnv().Extend(
		cel.Variable(Self, object),
		cel.Variable(Old, cel.DynType),
		cel.Variable(Diff, cel.ListType(object)),
		cel.Variable(Cause, cel.StringType),
		cel.Variable(Params, object),
		cel.Variable(Now, cel.TimestampType),
		cel.Variable(Children, object),
		cel.Variable(Related, object),
	)
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	return &Compiler{env: env}, nil
}

// With returns a compiler that knows more variables, whose types are known only when they are
// evaluated. They are given in Scope.Vars.
func (c *Compiler) With(variables ...string) (*Compiler, error) {
	if len(variables) == 0 {
		return c, nil
	}
	var options []cel.EnvOption
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := c.env.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("adding variables %v: %w", variables, err)
	}
	return &Compiler{env: env, more: append(slices.Clone(c.more), variables...)}, nil
}

// Value compiles an expression of any type.
func (c *Compiler) Value(text string) (*Program, error) {
	ast, issues := c.env.Compile(text)
	if issues.Err() != nil {
		return nil, newError(text, issues.Errors())
	}
	return c.program(text, ast)
}

// Compile compiles a predicate: an expression that is true or false. The error is an [Error] when
// the text is at fault. An expression whose type is known only when it runs is accepted here and
// checked then.
func (c *Compiler) Compile(text string) (*Program, error) {
	ast, issues := c.env.Compile(text)
	if issues.Err() != nil {
		return nil, newError(text, issues.Errors())
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		message := fmt.Sprintf("the result is %s, want true or false", named(t.TypeName()))
		return nil, &Error{Text: text, Issues: []Issue{{Line: 1, Column: 1, Message: message}}}
	}
	return c.program(text, ast)
}

func (c *Compiler) program(text string, ast *cel.Ast) (*Program, error) {
	program, err := c.env.Program(ast)
	if err != nil {
		return nil, fmt.Errorf("preparing expression: %w", err)
	}
	return &Program{text: text, program: program, uses: variables(ast), compiler: c}, nil
}

// named describes a type to people who write YAML.
func named(typeName string) string {
	switch typeName {
	case "string":
		return "text"
	case "int", "uint", "double":
		return "a number"
	case "list", "map":
		return "a " + typeName
	case "null_type":
		return "null"
	default:
		return "of type " + typeName
	}
}

// variables returns the names that an expression refers to; what macros bind is among them.
func variables(ast *cel.Ast) map[string]bool {
	uses := map[string]bool{}
	for _, ref := range ast.NativeRep().ReferenceMap() {
		if ref.Name != "" {
			uses[ref.Name] = true
		}
	}
	return uses
}
