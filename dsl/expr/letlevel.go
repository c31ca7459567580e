// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/cel"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Lets compiles named expressions in an order in which each knows those that it uses. Around has those of the outer level, and
// may be nil. Their variables are those of the compiler. Lets with faults are in the result, too, with values of any type, so that
// their uses are no faults.
func (c *Compiler) Lets(around *Lets, named []Let) (*Lets, []LetFault) {
	out := around.level()
	m := &lets{out: out, compiler: c, needs: map[string][]string{}}
	for _, one := range named {
		if err := c.wrongName(letWord, around, one.Name); err != nil {
			m.fault(one.Name, err)
			continue
		}
		out.own = append(out.own, one.Name)
		out.all[one.Name] = &let{Let: one, kind: cel.DynType, used: &atomic.Bool{}}
	}
	m.sort()
	m.compile(around)
	return out, m.faults
}

// level returns what the lets of a level within this one are added to.
func (l *Lets) level() *Lets {
	if l == nil {
		return &Lets{all: map[string]*let{}}
	}
	return &Lets{all: maps.Clone(l.all), children: l.children}
}

// lets compiles the lets of one level.
type lets struct {
	out      *Lets
	compiler *Compiler
	// needs are the lets of the level that each one uses. Lets in circles, and those that do not parse, are not among its keys.
	needs  map[string][]string
	faults []LetFault
}

func (m *lets) fault(name string, err error) { m.faults = append(m.faults, LetFault{name, err}) }

// sort parses the expressions, and finds what each needs, and circles.
func (m *lets) sort() {
	for _, name := range m.out.own {
		s, err := one(m.out.all[name].Text)
		if err != nil {
			m.fault(name, err)
			continue
		}
		parsed, err := m.compiler.parse(s)
		if err != nil {
			m.fault(name, err)
			continue
		}
		m.needs[name] = []string{}
		for _, use := range m.out.usesIn(s.text, parsed.NativeRep()) {
			if slices.Contains(m.out.own, use.let.Name) && !slices.Contains(m.needs[name], use.let.Name) {
				m.needs[name] = append(m.needs[name], use.let.Name)
			}
		}
	}
	for _, name := range m.out.own {
		if circle := m.circle([]string{name}); circle != nil {
			m.fault(name, errors.New("the lets need each other in a circle: "+strings.Join(circle, " → ")))
			for _, one := range circle {
				delete(m.needs, one)
			}
		}
	}
}

// circle extends a way through lets until it is back at its first let. It returns that circle, or nil.
func (m *lets) circle(way []string) []string {
	seen := map[string]bool{}
	var search func(way []string) []string
	search = func(way []string) []string {
		for _, next := range m.needs[way[len(way)-1]] {
			switch {
			case next == way[0]:
				return append(slices.Clone(way), next)
			case seen[next]:
				continue
			}
			seen[next] = true
			if found := search(append(slices.Clone(way), next)); found != nil {
				return found
			}
		}
		return nil
	}
	return search(way)
}

// compile compiles the lets in rounds: each round has those whose needs the rounds before it have compiled.
func (m *lets) compile(around *Lets) {
	known := around.level()
	for _, name := range m.out.own {
		if _, sound := m.needs[name]; !sound {
			known.all[name] = m.out.all[name]
		}
	}
	for len(m.needs) > 0 {
		compiler, err := m.compiler.extended(known)
		var round []string
		for _, name := range m.out.own {
			waits := func(other string) bool { return known.all[other] == nil }
			if needs, sound := m.needs[name]; sound && !slices.ContainsFunc(needs, waits) {
				round = append(round, name)
			}
		}
		for _, name := range round {
			if err == nil {
				m.one(compiler, m.out.all[name])
			} else {
				m.fault(name, err)
			}
		}
		for _, name := range round {
			known.all[name] = m.out.all[name]
			delete(m.needs, name)
		}
	}
	final, err := m.compiler.extended(m.out)
	for _, name := range m.out.own {
		if p := m.out.all[name].program; p != nil && err == nil {
			p.compiler = final
		}
	}
}

// one compiles a let.
func (m *lets) one(c *Compiler, l *let) {
	defining := *c
	defining.defines, defining.near = true, m.out.names()
	program, err := defining.Alone(l.Text)
	if err != nil {
		m.fault(l.Name, err)
		return
	}
	l.program, l.kind = program, program.ast.GetType(program.ast.Expr().ID())
}

// named returns the names of all variables that an expression may have.
func (c *Compiler) named() []string {
	near := c.near
	if near == nil {
		near = c.lets.names()
	}
	return slices.DeleteFunc(slices.Concat(c.variables, near), func(name string) bool { return c.absent[name] != "" })
}

// reserved are words that CEL does not accept as variables.
var reserved = []string{
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace", "null",
	"package", "return", "true", "var", "void", "while",
}

// elsewhere are variables that some expressions have.
var elsewhere = append(ItemVariables(), Current, "child", "object", "objects")

// wrongName says why a let, or what the word says, cannot have a name.
func (c *Compiler) wrongName(word string, around *Lets, name string) error {
	outer := around.find(name)
	prefix := func(function string) bool { return strings.HasPrefix(function, name+".") }
	_, typed := c.env.CELTypeProvider().FindIdent(name)
	switch {
	case !dsl.IsIdentifier(name):
		return fmt.Errorf("%q is no name for a %s: want letters, digits and _, as in wanted", name, word)
	case slices.Contains(reserved, name):
		return fmt.Errorf("%q is no name for a %s: it is a word of CEL", name, word)
	case slices.Contains(c.variables, name), slices.Contains(elsewhere, name):
		return fmt.Errorf("%q is no name for a %s: it is a variable already", name, word)
	case typed, slices.ContainsFunc(c.callable, prefix):
		return fmt.Errorf("%q is no name for a %s: it is a type or a library of CEL", name, word)
	case outer != nil:
		return fmt.Errorf("there is a %s %s already (at %s), and another one would hide it: give this one a name of its own", outer.word(), name, outer.At)
	}
	return nil
}
