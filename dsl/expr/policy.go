// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	policycel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Request is the variable of admission rules with the request: operation, userInfo, namespace and the like, as admission policies
// have it. Only admission rules declare it, by [Compiler.With].
const Request = dsl.RequestVariable

// PolicyVariables maps the variables of admission rules to those of the API server's admission policies.
func PolicyVariables() map[string]string {
	return map[string]string{Self: "object", Old: "oldObject", Request: "request", Params: "params"}
}

// Policy returns the expression as admission policies of the API server have it. Variables maps each
// variable that a policy can have to its expression there. The error says why the API server cannot evaluate the expression.
func (p *Program) Policy(variables map[string]string) (string, error) {
	text, _, err := p.policy(variables)
	return text, err
}

// policy is Policy, and returns the type of the expression, too.
func (p *Program) policy(variables map[string]string) (string, *cel.Type, error) {
	for _, name := range p.compiler.variables {
		if _, there := variables[name]; !there && p.Uses(name) {
			return "", nil, fmt.Errorf("it reads %s", name)
		}
	}
	text := p.replaced(variables)
	if last := text[strings.LastIndex(text, "\n")+1:]; strings.Contains(last, "//") {
		text += "\n" // a comment ends before the text that the caller adds
	}
	of, err := policyType(text)
	return text, of, err
}

// PolicyPredicate is [Program.Policy] for an expression that must be true or false. The API server only takes one whose type is
// bool, and a field has the type dyn. Evaluation fails if the value of a field is neither true nor false.
func (p *Program) PolicyPredicate(variables map[string]string) (string, error) {
	text, of, err := p.policy(variables)
	if err != nil || of.IsExactType(cel.BoolType) {
		return text, err
	}
	text = "(" + text + ") ? true : false"
	if !of.IsExactType(cel.DynType) { // to compile takes a while, and this one has to fail
		_, err = policyType(text)
	}
	return text, err
}

// replaced returns the text with lets written out, and with other expressions in the place of variables.
func (p *Program) replaced(variables map[string]string) string {
	names := map[int]string{} // by their places in bytes; macros may repeat a part
	freeIn(ast.NavigateAST(p.full.ast), nil, func(e ast.Expr, _ []string) {
		if name := strings.TrimPrefix(e.AsIdent(), "."); variables[name] != "" {
			names[offsetOf(p.full.text, p.full.ast.SourceInfo(), e)] = name
		}
	})
	text := p.full.text
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(names))) {
		name := names[at]
		if rest, is := strings.CutPrefix(text[at:], name); is {
			text = text[:at] + variables[name] + rest
		}
	}
	return text
}

// policyCompiler compiles as the API server does. It is made once, because that takes a while.
var policyCompiler = sync.OnceValue(func() policycel.Compiler {
	return policycel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// policyText is an expression for the compiler of the API server.
type policyText struct {
	text string
	want *cel.Type
}

// GetExpression returns the text.
func (t policyText) GetExpression() string { return t.text }

// ReturnTypes returns the type that the expression must have; a type other than [cel.AnyType] must be known at compile time.
func (t policyText) ReturnTypes() []*cel.Type { return []*cel.Type{t.want} }

// policyType compiles an expression as the API server does, and returns its type.
func policyType(text string) (*cel.Type, error) {
	options := policycel.OptionalVariableDeclarations{HasParams: true, HasPatchTypes: true}
	out := policyCompiler().CompileCELExpression(policyText{text, cel.AnyType}, options, environment.NewExpressions)
	return out.OutputType, policyError(out)
}

// policyError returns the reason why the API server cannot evaluate an expression; nil if it can.
func policyError(result policycel.CompilationResult) error {
	if err := result.Error; err != nil {
		if !strings.Contains(err.Detail, "<input>:") {
			return fmt.Errorf("the API server cannot evaluate it: it %s", err.Detail)
		}
		_, first, _ := strings.Cut(err.Detail, "<input>:")
		_, first, _ = strings.Cut(first, ": ")
		first, _, _ = strings.Cut(first, "\n")
		first = strings.TrimSuffix(first, " (in container '')")
		return fmt.Errorf("the API server cannot evaluate it: %s", strings.TrimSpace(first))
	}
	return nil
}

// Policy returns an expression of admission policies with the value of the template. Its values of maps and lists have type dyn. The error says
// why the API server cannot evaluate the template.
func (t *Template) Policy(variables map[string]string) (string, error) {
	switch plain := t.Plain.(type) {
	case map[string]any:
		return t.policyMap(variables)
	case []any:
		var parts []string
		for i := range t.List {
			text, err := t.List[i].Policy(variables)
			if err != nil {
				return "", err
			}
			parts = append(parts, "dyn("+text+")")
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case string:
		return t.policyText(variables, plain)
	case nil:
		return "null", nil
	case float64:
		return policyNumber(plain), nil
	default:
		return fmt.Sprint(plain), nil
	}
}

// PolicyMessage is [Template.Policy] with a string as result: messages of policies must have that type.
func (t *Template) PolicyMessage(variables map[string]string) (string, error) {
	text, err := t.Policy(variables)
	if err != nil {
		return text, err
	}
	of, err := policyType(text)
	if err != nil || of.IsExactType(cel.StringType) {
		return text, err
	}
	text = "string(" + text + ")"
	if !of.IsExactType(cel.DynType) {
		_, err = policyType(text)
	}
	return text, err
}

// policyNumber returns a number as CEL has it: with a point or an exponent.
func policyNumber(n float64) string {
	text := strconv.FormatFloat(n, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// policyMap is Policy for a map.
func (t *Template) policyMap(variables map[string]string) (string, error) {
	var parts []string
	for i := range t.Entries {
		key, err := t.Entries[i].Key.Policy(variables)
		if err != nil {
			return "", err
		}
		value, err := t.Entries[i].Value.Policy(variables)
		if err != nil {
			return "", err
		}
		parts = append(parts, key+": dyn("+value+")")
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

// policyText is Policy for a text. A text that is one expression has the expression's value.
func (t *Template) policyText(variables map[string]string, plain string) (string, error) {
	if len(t.Pieces) == 0 {
		return strconv.Quote(plain), nil
	}
	var parts []string
	for _, piece := range t.Pieces {
		if piece.isPlain() {
			parts = append(parts, strconv.Quote(piece.Text))
			continue
		}
		text, err := piece.Program.Policy(variables)
		switch kind := piece.Program.ast.GetType(piece.Program.ast.Expr().ID()); {
		case err != nil:
			return "", err
		case kind.Kind() == cel.OpaqueKind && kind.TypeName() == "optional_type":
			return "", fmt.Errorf("its value may be absent")
		case len(t.Pieces) == 1:
			return "(" + text + ")", nil
		}
		parts = append(parts, "string("+text+")")
	}
	return strings.Join(parts, " + "), nil
}
