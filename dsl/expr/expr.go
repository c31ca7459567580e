// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package expr compiles and evaluates the CEL expressions of a configuration.
//
// The language is that of admission policies and CRDs in Kubernetes, with the same libraries and the same cost
// limit for one evaluation. The variables are self (the object), old (the essence that was handled last, null if
// that is not kept), diff (a list of {op, path, old, new}), cause (a string), event (for the cause event its type,
// as ADDED), params (the handler's parameters), now (the time of the reconcile), children (by the names they are made
// under: an object, or a list if there may be several), related (by the names of the relations, in the same form),
// indexes (by name: always a list of the values under a key) and handlers (what came of them, by their ids: a map of
// state, message, attempts and, if there is one, nextTry). A missing child or related object is an empty map.
// A configuration may add variables whose values are expressions; see [Let].
//
// In addition to the libraries of Kubernetes there are these functions. ready(object) says by the rules of kstatus
// whether an object is ready; it is false for an object that is missing or being deleted. hash(any) returns a short
// digest, which is equal for equal values. base64(text or bytes) encodes. unbase64(text) decodes, and fails for
// invalid base64 and for results that are not text. merge(map, map), pick(map, keys) and omit(map, keys) make maps of maps. json(any),
// unjson(text), yaml(any) and unyaml(text) write and read texts. sha256(text or bytes) is a digest in hexadecimal digits, and
// random(n, seed) gives n letters that are the same for the same seed. generate(n) gives n random letters and digits, for a
// field that keeps the value; see [Template.Once].
//
// Templates of children also have current: the children of the same apply as they are before it.
package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Compiler compiles expressions. All programs of one compiler share its environment. It is safe
// for use by several goroutines.
type Compiler struct {
	env *cel.Env
	// variables are the names of all variables.
	variables []string
	// absent are those of them that are not offered in messages.
	absent map[string]string
	// functions are all functions, by name; macros have their numbers of arguments.
	functions map[string]*decls.FunctionDecl
	macros    map[string][]int
	// callable are the names of functions and macros that people can call, sorted.
	callable []string
	// branches observes conditions. Nil means that they are not observed.
	branches Branches
	// generates: expressions may have generate().
	generates bool
	// lets are variables whose values are expressions. defines: it compiles lets.
	lets    *Lets
	defines bool
	// near are the names of all lets of the level that is compiled, for messages; nil stands for those of lets.
	near []string
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
	Indexes  = "indexes"
	Handlers = "handlers"

	// Current has the children of an apply as they are before it. Only apply declares it, by [Compiler.With].
	Current = "current"
)

// variables returns the names of the variables of all expressions.
func variables() []string {
	return []string{Self, Old, Diff, Cause, Event, Params, Now, Children, Related, Indexes, Handlers}
}

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
		cel.Variable(Indexes, object),
		cel.Variable(Handlers, object),
	)
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	c := &Compiler{env: env, functions: env.Functions(), macros: map[string][]int{}}
	c.variables = variables()
	for _, macro := range env.Macros() {
		c.macros[macro.Function()] = append(c.macros[macro.Function()], macro.ArgCount())
	}
	for name := range c.functions {
		if strings.IndexFunc(name, isWord) == 0 && name[0] != '_' && !strings.Contains(name, "@") { // not an operator
			c.callable = append(c.callable, name)
		}
	}
	c.callable = slices.Sorted(slices.Values(slices.AppendSeq(c.callable, maps.Keys(c.macros))))
	return c, nil
}

// libraries returns the libraries whose name is part of their functions' names, as in math.greatest.
func (c *Compiler) libraries() []string {
	return slices.DeleteFunc(slices.Clone(c.callable), func(name string) bool { return !strings.Contains(name, ".") })
}

// With returns a compiler with additional variables, whose types are only known at run time. Scope.Vars has their
// values.
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
	more := *c
	more.env, more.variables = env, slices.Concat(c.variables, variables)
	return &more, nil
}

// Without returns a compiler whose messages do not offer variables that are absent where its expressions stand, each with the reason.
// An expression that reads one is compiled: the check of a program with [shape.Schemas.Without] reports it.
func (c *Compiler) Without(absent map[string]string) *Compiler {
	fewer := *c
	fewer.absent = absent
	return &fewer
}

// Value compiles an expression of any type.
func (c *Compiler) Value(text string) (*Program, error) { return c.compile(alone(text)) }

// Alone compiles an expression of any type. It may be written as one ${…}. The error is an [Error] if the text has
// faults.
func (c *Compiler) Alone(text string) (*Program, error) {
	s, err := one(text)
	if err != nil {
		return nil, err
	}
	return c.compile(s)
}

// one returns the source of an expression, which may be written as one ${…}.
func one(text string) (source, error) {
	s := alone(text)
	if !strings.HasPrefix(text, "${") {
		return s, nil
	}
	pieces, fault := scan(strings.TrimRight(text, " \n"))
	switch {
	case fault != nil:
		return s, fault
	case len(pieces) > 1:
		return s, s.fault(Issue{Place{1, 1}, "want one expression: put all of it into one ${…}"})
	}
	return source{pieces[0].Text, pieces[0].At}, nil
}

// Predicate compiles an expression that is true or false. It may be written as one ${…}. The error is an [Error] if
// the text has faults. An expression whose type is only known at run time is accepted, and checked then.
func (c *Compiler) Predicate(text string) (*Program, error) {
	s, err := one(text)
	if err != nil {
		return nil, err
	}
	p, err := c.compile(s)
	if err != nil {
		return nil, err
	}
	if t := p.ast.GetType(p.ast.Expr().ID()); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, s.fault(Issue{Place{1, 1}, fmt.Sprintf("the result is %s, want true or false", named(t.TypeName()))})
	}
	p.predicate = true
	return p, nil
}

// Moment compiles an expression that gives a time: a timestamp, text in RFC 3339, or null or an absent optional for
// none. It may be written as one ${…}. The error is an [Error] if the text has faults. An expression whose type is only
// known at run time is accepted, and checked then.
func (c *Compiler) Moment(text string) (*Program, error) {
	s, err := one(text)
	if err != nil {
		return nil, err
	}
	if _, fixed := time.Parse(time.RFC3339, text); fixed == nil {
		return nil, s.fault(Issue{Place{1, 1}, fmt.Sprintf("write timestamp(%q) for a time that is always the same", text)})
	}
	p, err := c.compile(s)
	if err != nil {
		return nil, err
	}
	if t := p.ast.GetType(p.ast.Expr().ID()); !mayBe(t, cel.TimestampType) {
		return nil, s.fault(Issue{Place{1, 1}, WantMoment(named(t.TypeName()))})
	}
	p.moment = true
	return p, nil
}

// Span compiles an expression that gives a duration: a duration of CEL, text such as 1h30m, or null or an absent optional
// for none; otherwise as Moment.
func (c *Compiler) Span(text string) (*Program, error) {
	p, err := c.Alone(text)
	if err != nil {
		return nil, err
	}
	if t := p.ast.GetType(p.ast.Expr().ID()); !mayBe(t, cel.DurationType) {
		return nil, p.fault(Issue{Place{1, 1}, WantSpan(named(t.TypeName()))})
	}
	p.span = true
	return p, nil
}

// longest limits the characters of an expression. CEL accepts 100,000, but its checker needs time and memory that
// grow with the square of the length: five thousand take a second at worst.
const longest = 5000

// parse parses an expression. The error is an [Error].
func (c *Compiler) parse(s source) (*cel.Ast, error) {
	if size := utf8.RuneCountInString(s.text); size > longest {
		message := fmt.Sprintf("the expression has %d characters, and the most is %d", size, longest)
		return nil, s.fault(Issue{Place{1, 1}, message})
	}
	parsed, issues := c.env.Parse(s.text)
	if issues.Err() != nil {
		return nil, syntaxError(s, issues.Errors()[0])
	}
	return parsed, nil
}

// compile parses and checks an expression. The error is an [Error].
func (c *Compiler) compile(s source) (*Program, error) {
	parsed, err := c.parse(s)
	if err != nil {
		return nil, err
	}
	checked, err := c.check(s, c.renamed(parsed))
	if err != nil {
		return nil, err
	}
	uses := c.lets.usesIn(s.text, parsed.NativeRep())
	full, err := c.expand(s, checked, uses)
	if err != nil {
		return nil, err
	}
	c.uses(uses)
	options := []cel.ProgramOption{cel.CustomDecoratorV2(guarded(c.functions)), cel.InterruptCheckFrequency(1)}
	if c.branches != nil {
		options = append(options, cel.CustomDecoratorV2(c.observing(s.text, checked.NativeRep())))
	}
	program, err := c.env.Program(checked, options...)
	if err != nil { // a constant that nothing can be done with
		return nil, s.fault(Issue{Place{1, 1}, oneLine(err.Error())})
	}
	tree := checked.NativeRep()
	if call := generation(tree.Expr()); call != nil && !c.generates {
		return nil, s.fault(Issue{placeOf(s.text, tree.SourceInfo(), call), misplacedGenerate})
	}
	return &Program{
		source: s, program: program, uses: usedBy(tree, full.ast), compiler: c, ast: tree, full: full, direct: uses,
		copies: copying(tree),
		loops:  loops(tree), longest: longestLoop,
	}, nil
}

// oneLine returns a message as one line.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

// named describes a type of CEL to people who write YAML.
func named(typeName string) string {
	typeName, _, _ = strings.Cut(typeName, "(")
	return cmp.Or(map[string]string{
		"string": "text", "bytes": "bytes",
		"int": "a whole number", "uint": "a whole number", "double": "a number",
		"bool": "true or false", "null": "null", "null_type": "null",
		"list": "a list", "map": "a map",
		"timestamp": "a time", "google.protobuf.Timestamp": "a time",
		"duration": "a duration", "google.protobuf.Duration": "a duration",
		"optional_type": "an optional value", "dyn": "a value",
		"kubernetes.Quantity": "a quantity", "type": "a type",
	}[typeName], "a value of type "+typeName)
}

// usedBy returns the names that an expression uses, including those that macros bind: as it stands, and with its lets written out.
func usedBy(forms ...*ast.AST) map[string]bool {
	uses := map[string]bool{}
	for _, form := range forms {
		for _, ref := range form.ReferenceMap() {
			if ref.Name != "" {
				uses[ref.Name] = true
			}
		}
	}
	return uses
}
