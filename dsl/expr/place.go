// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"
	"unicode"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// place is a line and a column, both from 1; columns count characters.
type place struct{ line, column int }

func placeAt(l common.Location) place { return place{max(l.Line(), 1), max(l.Column()+1, 1)} }

// placeAtOffset returns the place of a character.
func placeAtOffset(text []rune, offset int) place {
	out := place{1, 1}
	for _, c := range text[:min(offset, len(text))] {
		out.column++
		if c == '\n' {
			out = place{out.line + 1, 1}
		}
	}
	return out
}

// placeOf returns where a part of the expression stands; for operators that is the operator, for
// calls and fields their name.
func (in *inspector) placeOf(e ast.Expr) place {
	switch e.Kind() {
	case ast.SelectKind:
		return in.fieldPlace(e)
	case ast.CallKind, ast.ComprehensionKind:
		return in.callPlace(e)
	}
	return placeAt(in.source.GetStartLocation(e.ID()))
}

// callPlace returns where the name of a function or a macro stands. CEL knows its bracket.
func (in *inspector) callPlace(e ast.Expr) place {
	where, found := in.source.GetOffsetRange(e.ID())
	if !found {
		return place{1, 1}
	}
	return placeAtOffset(in.text, nameBefore(in.text, int(where.Start)))
}

// callName returns the name of a function or a macro as it is written.
func (in *inspector) callName(e ast.Expr) string {
	where, _ := in.source.GetOffsetRange(e.ID())
	bracket := min(int(where.Start), len(in.text))
	return string(in.text[nameBefore(in.text, bracket):bracket])
}

// nameBefore returns where the name in front of a bracket begins, or the offset itself.
func nameBefore(text []rune, bracket int) int {
	if bracket >= len(text) || text[bracket] != '(' {
		return bracket
	}
	at := bracket
	for at > 0 && isWord(text[at-1]) {
		at--
	}
	return at
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// fieldPlace returns where the name of a selected field stands. CEL knows the dot, and for has()
// only its bracket.
func (in *inspector) fieldPlace(e ast.Expr) place {
	operand, name := selected(e)
	start, _ := in.source.GetOffsetRange(e.ID())
	at := int(start.Start)
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		before, _ := in.source.GetOffsetRange(operand.ID())
		at = int(before.Start)
		if isSelection(operand) {
			at++ // over its own dot
		}
	}
	if found := fieldFrom(in.text, at, name); found >= 0 {
		return placeAtOffset(in.text, found)
	}
	return placeAt(in.source.GetStartLocation(e.ID()))
}

func selected(e ast.Expr) (operand ast.Expr, name string) {
	if e.Kind() == ast.SelectKind {
		return e.AsSelect().Operand(), e.AsSelect().FieldName()
	}
	name, _ = constantText(e.AsCall().Args()[1])
	return e.AsCall().Args()[0], name
}

func isSelection(e ast.Expr) bool {
	return e.Kind() == ast.SelectKind || e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.OptSelect
}

// fieldFrom returns where, from an offset on, the name of a field stands behind a dot; -1 when it
// is not found.
func fieldFrom(text []rune, from int, name string) int {
	want := []rune(name)
	for dot := max(from, 0); dot < len(text); dot++ {
		if text[dot] != '.' {
			continue
		}
		at := dot + 1
		for at < len(text) && strings.ContainsRune(" \t\r\n?`", text[at]) {
			at++
		}
		end := at + len(want)
		if end <= len(text) && string(text[at:end]) == name && (end == len(text) || !isWord(text[end])) {
			return at
		}
	}
	return -1
}
