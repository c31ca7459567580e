// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Place is a line and a column, both from 1; columns count characters.
type Place struct{ Line, Column int }

// walk finds places of a text one behind the other, so that many of them cost one look at the text.
type walk struct {
	at    int
	place Place
}

// to returns the place of a byte of the text that is not before the last one.
func (w *walk) to(text string, at int) Place {
	step := text[w.at:at]
	if newlines := strings.Count(step, "\n"); newlines > 0 {
		w.place = Place{w.place.Line + newlines, 1}
		step = step[strings.LastIndexByte(step, '\n')+1:]
	}
	w.place.Column += utf8.RuneCountInString(step)
	w.at = at
	return w.place
}

// placeAt returns the place of a byte of text.
func placeAt(text string, at int) Place {
	from := walk{place: Place{1, 1}}
	return from.to(text, at)
}

// placeOf returns where a part of an expression stands; for operators that is the operator, for calls and
// fields their name. CEL knows the brackets of calls and the dots of fields.
func placeOf(text string, info *ast.SourceInfo, e ast.Expr) Place {
	at := offsetOf(text, info, e)
	if operand, name, how := Selection(e); behindDot(how) {
		if how == "." && e.AsSelect().IsTestOnly() { // of has() it knows the bracket alone
			at = offsetOf(text, info, operand)
			if _, _, how := Selection(operand); behindDot(how) {
				at++ // over its own dot
			}
		}
		return placeAt(text, fieldFrom(text, at, name))
	}
	called := e.Kind() == ast.CallKind || e.Kind() == ast.ComprehensionKind
	if called && strings.HasPrefix(text[at:], "(") {
		at = len(strings.TrimRightFunc(text[:at], isWord))
	}
	return placeAt(text, at)
}

// behindDot reports whether what is selected stands behind a dot.
func behindDot(how string) bool { return how == "." || how == operators.OptSelect }

// offsetOf returns the byte of a text at which CEL has an expression.
func offsetOf(text string, info *ast.SourceInfo, e ast.Expr) int {
	where, _ := info.GetOffsetRange(e.ID())
	characters := where.Start
	for i := range text {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(text)
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// Selection returns of what an expression selects something by a name that is known, and how: "." as in x.y and
// has(x.y), else CEL's operator, as in x.?y, x['y'] and x[?'y']. It is empty for all other expressions.
func Selection(e ast.Expr) (operand ast.Expr, name, how string) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), "."
	case ast.CallKind:
		switch c := e.AsCall(); c.FunctionName() {
		case operators.OptSelect, operators.Index, operators.OptIndex:
			if name, constant := ConstantText(c.Args()[1]); constant {
				return c.Args()[0], name, c.FunctionName()
			}
		}
	}
	return nil, "", ""
}

// fieldFrom returns where, from a byte on, the name of a field stands behind a dot; the byte itself when it is
// not found.
func fieldFrom(text string, from int, name string) int {
	for rest := text[from:]; rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		behind := strings.TrimLeft(rest, " \t\r\n?`")
		if after, is := strings.CutPrefix(behind, name); is && strings.IndexFunc(after, isWord) != 0 {
			return len(text) - len(behind)
		}
	}
	return from
}

// ConstantText returns the text that an expression is, if it is a constant.
func ConstantText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := e.AsLiteral().Value().(string)
	return value, ok
}
