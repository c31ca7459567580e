// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// letUse is a use of a let in the text of an expression: the bytes of its name.
type letUse struct {
	let      *let
	from, to int
	// bound are the variables of macros around it.
	bound []string
}

// usesIn returns the uses of lets in an expression, in the order of the text.
func (l *Lets) usesIn(text string, of *ast.AST) (out []letUse) {
	if l == nil || len(l.all) == 0 {
		return nil
	}
	freeIn(ast.NavigateAST(of), nil, func(e ast.Expr, bound []string) {
		name := strings.TrimPrefix(e.AsIdent(), ".")
		found := l.all[name]
		if found == nil {
			return
		}
		from := offsetOf(text, of.SourceInfo(), e)
		if strings.HasPrefix(e.AsIdent(), ".") { // CEL may have the place of the name
			from = max(strings.LastIndexByte(text[:min(from+1, len(text))], '.'), 0)
		}
		behind := strings.Index(text[from:], name)
		use := letUse{found, from, from + behind + len(name), bound}
		same := func(other letUse) bool { return other.from == from } // macros may repeat a part
		if behind >= 0 && !slices.ContainsFunc(out, same) {
			out = append(out, use)
		}
	})
	slices.SortFunc(out, func(a, b letUse) int { return cmp.Compare(a.from, b.from) })
	return out
}

// freeIn calls found for each variable of an expression that is not a macro's own, with the names that the macros around it bind.
func freeIn(e ast.NavigableExpr, bound []string, found func(e ast.Expr, bound []string)) {
	if e.Kind() == ast.IdentKind {
		name := e.AsIdent() // a leading dot skips macros' variables
		if strings.HasPrefix(name, ".") || !slices.Contains(bound, name) {
			found(e, bound)
		}
		return
	}
	within := bound
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		within = append(slices.Clone(bound), append(iterated(c), c.AccuVar())...)
	}
	for i, part := range e.Children() {
		if i >= 2 { // the range and the initial value of the accumulator are outside the macro's scope
			freeIn(part, within, found)
			continue
		}
		freeIn(part, bound, found)
	}
}

// expanded is an expression with the lets that it uses written out. What is known of an expression before it runs, such as what
// it reads, is known of this one. Without lets it is the expression itself.
type expanded struct {
	text string
	ast  *ast.AST
	// parts are the lets in the text, in its order.
	parts []expandedLet
}

// expandedLet is a let that was written out in a text, in parentheses. Begin and end are the positions of its text in
// bytes, without the parentheses.
type expandedLet struct {
	letUse
	begin, end int
}

// expand writes out the lets of an expression.
func (c *Compiler) expand(s source, checked *cel.Ast, uses []letUse) (expanded, error) {
	uses = slices.DeleteFunc(slices.Clone(uses), func(u letUse) bool { return u.let.program == nil }) // its faults are reported already
	if len(uses) == 0 {
		return expanded{text: s.text, ast: checked.NativeRep()}, nil
	}
	if issues := c.misplaced(s.text, uses); len(issues) > 0 {
		return expanded{}, s.fault(issues...)
	}
	var text strings.Builder
	out, at := expanded{}, 0
	for _, use := range uses {
		text.WriteString(s.text[at:use.from] + use.let.opening())
		begin := text.Len()
		text.WriteString(use.let.program.full.text)
		out.parts = append(out.parts, expandedLet{use, begin, text.Len()})
		text.WriteString("\n)") // a comment may end the text
		at = use.to
	}
	out.text = text.String() + s.text[at:]
	if size := utf8.RuneCountInString(out.text); size > longest {
		message := fmt.Sprintf("with its lets written out the expression has %d characters, and the most is %d", size, longest)
		return expanded{}, s.fault(Issue{placeAt(s.text, uses[0].from), message})
	}
	fail := func(why string) error {
		return s.fault(Issue{placeAt(s.text, uses[0].from), "with its lets written out: " + why})
	}
	parsed, err := c.parse(alone(out.text))
	if err != nil {
		return expanded{}, fail(err.Error())
	}
	full, err := c.check(alone(out.text), renamed(parsed, func(e ast.Expr) *Lets {
		if _, of := out.back(placedAt(out.text, parsed.NativeRep().SourceInfo(), e)); of != nil {
			return of.program.compiler.lets
		}
		return c.lets
	}))
	if err != nil {
		return expanded{}, fail(err.Error())
	}
	out.ast = full.NativeRep()
	return out, nil
}

// opening is the bracket before the written-out text. A parameter that may be of any type stays so when its value is of one.
func (l *let) opening() string {
	of := l.program.ast.GetType(l.program.ast.Expr().ID())
	if l.Parameter != nil && l.kind.IsExactType(cel.DynType) && !of.IsExactType(cel.DynType) {
		return "dyn("
	}
	return "("
}

// misplaced reports uses of lets that read what an expression does not have, or what a macro calls something else.
func (c *Compiler) misplaced(text string, uses []letUse) (out []Issue) {
	for _, use := range uses {
		for _, name := range use.let.program.reads() {
			switch {
			case !slices.Contains(variables(), name) && !slices.Contains(c.variables, name):
				out = append(out, Issue{placeAt(text, use.from), fmt.Sprintf("%v reads %s, which is not there here", use.let, name)})
			case slices.Contains(use.bound, name):
				out = append(out, Issue{placeAt(text, use.from), fmt.Sprintf("%v reads %s, and a macro around it has a variable of this name: give that another name", use.let, name)})
			}
		}
	}
	return out
}

// reads returns the variables that an expression reads, lets written out.
func (p *Program) reads() (out []string) {
	freeIn(ast.NavigateAST(p.full.ast), nil, func(e ast.Expr, _ []string) {
		name := strings.TrimPrefix(e.AsIdent(), ".")
		if slices.Contains(p.compiler.variables, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	return out
}

// uses marks the lets as used, and compiles those that are observed.
func (c *Compiler) uses(all []letUse) {
	for _, use := range all {
		if use.let.program == nil {
			continue
		}
		if c.branches != nil {
			use.let.run()
		}
		if !c.defines && !use.let.used.Swap(true) {
			c.uses(use.let.program.direct)
		}
	}
}

// back returns the byte of an expression for a byte of its written form, and the innermost let that has this byte, or nil.
func (x *expanded) back(at int) (int, *let) {
	shift := 0
	for _, part := range x.parts {
		switch {
		case at < part.begin:
			return max(min(at-shift, part.from), 0), nil
		case at <= part.end:
			_, inner := part.let.program.full.back(at - part.begin)
			return part.from, cmp.Or(inner, part.let)
		}
		shift = part.end + len("\n)") - part.to
	}
	return max(at-shift, 0), nil
}

// Place returns the place of a part of the expression. For a part of a let that is that of the let's name.
func (p *Program) Place(e ast.Expr) Place {
	at, _ := p.full.back(placedAt(p.full.text, p.full.ast.SourceInfo(), e))
	return placeAt(p.text, min(at, len(p.text)))
}

// Let returns the let that has a part of the expression, and the words that begin a message about it; nil for other parts.
func (p *Program) Let(e ast.Expr) (of *Let, program *Program, message string) {
	_, found := p.full.back(placedAt(p.full.text, p.full.ast.SourceInfo(), e))
	if found == nil {
		return nil, nil, ""
	}
	return &found.Let, found.program, found.String() + ": "
}

// Through names the let by which the expression uses a variable, as the beginning of a message; empty if it does so itself.
func (p *Program) Through(variable string) string {
	itself := false
	freeIn(ast.NavigateAST(p.ast), nil, func(e ast.Expr, _ []string) {
		itself = itself || strings.TrimPrefix(e.AsIdent(), ".") == variable
	})
	for _, use := range p.direct {
		if !itself && use.let.program != nil && slices.Contains(use.let.program.reads(), variable) {
			return use.let.String() + ": "
		}
	}
	return ""
}

// usesLets reports whether the expression uses lets.
func (p *Program) usesLets() bool { return len(p.direct) > 0 }

// Written returns the text of the expression with the lets that it uses written out.
func (p *Program) Written() string { return p.full.text }
