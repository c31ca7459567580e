// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package expr compiles and evaluates the CEL expressions of a configuration.
//
// The language is the one that Kubernetes itself uses in admission policies and CRDs, with the
// same libraries and the same limit on what one evaluation may cost. The variables are self (the
// object), old (its essence as it was handled last, null when that is not kept), diff (a list of
// {op, path, old, new}), cause (a string), event (for the cause event what the watch told, as ADDED),
// params (the handler's parameters), now (the time of the pass), children (by the names they are made
// under: an object, or a list where there may be several) and related (by the names of the relations,
// in the same form). A child or related object that is not there is an empty map.
//
// Beside the libraries of Kubernetes there are ready(object), whether an object is as its spec wants
// it by the rules of kstatus, and false for one that is not there or is being deleted; hash(any), a
// short digest that is equal for equal values; base64(text or bytes), and unbase64(text), which
// fails when that is not base64 or when what is encoded is no text.
package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Compiler compiles expressions. All programs of one compiler share its environment. It is safe
// for use by several goroutines.
type Compiler struct {
	env  *cel.Env
	more []string
	// functions are all that there are, by name.
	functions map[string]*decls.FunctionDecl
}

// The variables of an expression.
const (
	Self   = "self"
	Old    = "old"
	Diff   = "diff"
	Cause  = "cause"
	Event  = "event"
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
		cel.Lib(functions{}),
		cel.Variable(Self, object),
		cel.Variable(Old, cel.DynType),
		cel.Variable(Diff, cel.ListType(object)),
		cel.Variable(Cause, cel.StringType),
		cel.Variable(Event, cel.StringType),
		cel.Variable(Params, object),
		cel.Variable(Now, cel.TimestampType),
		cel.Variable(Children, object),
		cel.Variable(Related, object),
	)
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	return &Compiler{env: env, functions: env.Functions()}, nil
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
	more := append(slices.Clone(c.more), variables...)
	return &Compiler{env: env, more: more, functions: c.functions}, nil
}

// Value compiles an expression of any type.
func (c *Compiler) Value(text string) (*Program, error) {
	checked, err := c.understand(text)
	if err != nil {
		return nil, err
	}
	return c.program(text, checked)
}

// Compile compiles a predicate: an expression that is true or false. The error is an [Error] when
// the text is at fault. An expression whose type is known only when it runs is accepted here and
// checked then.
func (c *Compiler) Compile(text string) (*Program, error) {
	checked, err := c.understand(text)
	if err != nil {
		return nil, err
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		message := fmt.Sprintf("the result is %s, want true or false", named(t.TypeName()))
		return nil, &Error{Text: text, Issues: []Issue{{Line: 1, Column: 1, Message: message}}}
	}
	p, err := c.program(text, checked)
	if err != nil {
		return nil, err
	}
	p.predicate = true
	return p, nil
}

// longest is how many characters an expression may have. CEL takes 100,000, but the time and memory
// that its checker needs grow with the square of it: five thousand take a second at worst.
const longest = 5000

// understand parses and checks an expression. The error is an [Error].
func (c *Compiler) understand(text string) (*cel.Ast, error) {
	if size := utf8.RuneCountInString(text); size > longest {
		message := fmt.Sprintf("the expression has %d characters, and the most is %d", size, longest)
		return nil, &Error{Text: text, Issues: []Issue{{Line: 1, Column: 1, Message: message}}}
	}
	parsed, issues := c.env.Parse(text)
	if issues.Err() != nil {
		return nil, syntaxError(text, issues.Errors())
	}
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return nil, c.meaningError(text, parsed.NativeRep(), issues.Errors())
	}
	return checked, nil
}

func (c *Compiler) program(text string, checked *cel.Ast) (*Program, error) {
	program, err := c.env.Program(checked)
	if err != nil { // a constant that nothing can be done with
		message := strings.Join(strings.Fields(err.Error()), " ")
		if strings.HasPrefix(message, "invalid qualifier type") {
			message = "what stands in brackets must be text or a number"
		}
		return nil, &Error{Text: text, Issues: []Issue{{Line: 1, Column: 1, Message: message}}}
	}
	return &Program{
		text: text, program: program, uses: variables(checked), compiler: c, ast: checked.NativeRep(),
	}, nil
}

// named describes a type of CEL to people who write YAML.
func named(typeName string) string {
	typeName, _, _ = strings.Cut(typeName, "(")
	switch typeName {
	case "string":
		return "text"
	case "int", "uint":
		return "a whole number"
	case "double":
		return "a number"
	case "bool":
		return "true or false"
	case "list", "map":
		return "a " + typeName
	case "null", "null_type":
		return "null"
	case "bytes":
		return "bytes"
	case "timestamp", "google.protobuf.Timestamp":
		return "a time"
	case "duration", "google.protobuf.Duration":
		return "a duration"
	case "optional_type":
		return "an optional value"
	case "dyn":
		return "a value"
	case "kubernetes.Quantity":
		return "a quantity"
	case "type":
		return "a type"
	default:
		return "a value of type " + typeName
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
