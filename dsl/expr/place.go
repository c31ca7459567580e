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

// walk finds places in a text in ascending order, so that many places need only one scan.
type walk struct {
	at    int
	place Place
}

// to returns the place of a byte of the text, which must not be before the last one.
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

// placeOf returns the place of a part of an expression: for operators that of the operator, for calls and fields
// that of their name.
func placeOf(text string, info *ast.SourceInfo, e ast.Expr) Place {
	return placeAt(text, placedAt(text, info, e))
}

// placedAt is placeOf as a byte of the text. CEL has the positions of the brackets of calls and of the dots of fields.
func placedAt(text string, info *ast.SourceInfo, e ast.Expr) int {
	at := offsetOf(text, info, e)
	if operand, name, how := Selection(e); behindDot(how) {
		if how == "." && e.AsSelect().IsTestOnly() { // for has(), CEL has only the position of the bracket
			at = offsetOf(text, info, operand)
			if _, _, how := Selection(operand); behindDot(how) {
				at++ // skip its own dot
			}
		}
		return fieldFrom(text, at, name)
	}
	called := e.Kind() == ast.CallKind || e.Kind() == ast.ComprehensionKind
	if called && strings.HasPrefix(text[at:], "(") {
		at = len(strings.TrimRightFunc(text[:at], isWord))
	}
	return at
}

// behindDot reports whether a selected name follows a dot.
func behindDot(how string) bool { return how == "." || how == operators.OptSelect }

// offsetOf returns the byte of a text at which CEL places an expression.
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

// Selection returns the operand and the name if an expression selects a constant name, and how: "." for x.y and
// has(x.y), otherwise CEL's operator, as for x.?y, x['y'] and x[?'y']. For other expressions it is empty.
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

// fieldFrom returns the position of a field's name that follows a dot after a byte; if it is not found, that byte.
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
