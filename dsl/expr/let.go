// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
)

// Let is a named expression. Its name is a variable of other expressions.
type Let struct {
	// Name is the variable.
	Name string
	// Text is the expression, plain CEL or one ${…}.
	Text string
	// At is the place of the expression in the configuration, for messages.
	At string
	// Elsewhere: no one resource has it, so each use checks it against the schemas that are known there.
	Elsewhere bool
	// AnyEntry: handlers of its resource may run for entries, to which children mean something else.
	AnyEntry bool
	// Parameter is set for the value of a part's parameter; see [Compiler.Parameters].
	Parameter *Parameter
}

// LetFault is a fault of a let: of its name, or of its expression if Err is an [Error].
type LetFault struct {
	Name string
	Err  error
}

// Lets are the named expressions of one level of a configuration, and those of the levels around it. It is safe for use
// by several goroutines.
type Lets struct {
	all map[string]*let
	own []string
	// children are the names of children that have others in the resource; see [Lets.WithChildren].
	children map[string]string
	// with are the compilers that know the lets, by the environment that each extends.
	with sync.Map
}

// let is a compiled let.
type let struct {
	Let
	// program is nil if the expression has a fault. kind is the type of its value.
	program *Program
	kind    *cel.Type
	used    *atomic.Bool
	// around are the lets that the expression of a parameter knows. Those of a let are the lets that have it.
	around *Lets
	// observe compiles the program once more, with conditions that are observed; nil if they are not.
	observe func() *Program
}

// run returns the program that evaluates the let.
func (l *let) run() *Program {
	if l.observe != nil {
		return l.observe()
	}
	return l.program
}

// String names the let and its place.
func (l *let) String() string {
	return fmt.Sprintf("%s %s (at %s)", l.word(), l.Name, l.At)
}

// The words for lets.
const (
	letWord       = "let"
	parameterWord = "parameter"
)

// word is what people call the let.
func (l *let) word() string {
	if l.Parameter != nil {
		return parameterWord
	}
	return letWord
}

// find returns the let of a name, or nil.
func (l *Lets) find(name string) *let {
	if l == nil {
		return nil
	}
	return l.all[name]
}

// names returns the names of all lets, sorted.
func (l *Lets) names() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.all))
}

// Used reports whether an expression uses the let, directly or by another let. It is known when all expressions are compiled.
func (l *Lets) Used(name string) bool {
	found := l.find(name)
	return found != nil && found.used.Load()
}

// Word is what people call a let of that name: a let, or a parameter of a part.
func (l *Lets) Word(name string) string {
	if found := l.find(name); found != nil {
		return found.word()
	}
	return letWord
}

// Program returns the compiled expression of a let; nil if it has a fault.
func (l *Lets) Program(name string) *Program {
	if found := l.find(name); found != nil {
		return found.program
	}
	return nil
}

// extended returns a compiler that knows lets.
func (c *Compiler) extended(l *Lets) (*Compiler, error) {
	out := *c
	out.lets = l
	if len(l.all) == 0 {
		return &out, nil
	}
	var options []cel.EnvOption
	for _, name := range l.names() {
		options = append(options, cel.Variable(name, l.all[name].kind))
	}
	env, err := c.env.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("adding lets: %w", err)
	}
	out.env = env
	return &out, nil
}

// WithLets returns a compiler whose expressions can use the lets; nil stands for none. The compiler must not have any.
func (c *Compiler) WithLets(l *Lets) (*Compiler, error) {
	if l == nil || len(l.all) == 0 && len(l.children) == 0 {
		return c, nil
	}
	env := c.env
	if known, found := l.with.Load(env); found {
		out := *c
		out.env, out.lets = known.(*Compiler).env, l.observed(c.branches)
		return &out, nil
	}
	out, err := c.extended(l)
	if err != nil {
		return nil, err
	}
	l.with.Store(env, out)
	more := *out
	more.lets = l.observed(c.branches)
	return &more, nil
}

// observed returns the same lets, which tell branches about the answers of conditions in them. Nil is the same lets.
func (l *Lets) observed(branches Branches) *Lets {
	if l == nil || branches == nil {
		return l
	}
	out := &Lets{all: map[string]*let{}, own: l.own, children: l.children}
	for name, of := range l.all {
		again := *of
		if of.program != nil {
			again.observe = sync.OnceValue(func() *Program {
				c := *of.program.compiler
				c.branches, c.lets, c.defines = branches, out, true
				if of.Parameter != nil {
					c.lets = of.around.observed(branches)
				}
				p, err := c.compile(of.program.source)
				if err != nil { // it was compiled before
					return of.program
				}
				return p
			})
		}
		out.all[name] = &again
	}
	return out
}
