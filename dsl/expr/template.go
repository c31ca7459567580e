// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Template is a tree of plain values with ${…} in its texts and keys. A text that is exactly one ${…} becomes the
// expression's value, of whatever type. In a longer text the value is written as text. An absent optional is left
// out of its map or list. $${ stands for ${ itself. It is safe for use by several goroutines. Each part of a
// template is a Template, too.
type Template struct {
	// Path is the path from the root of the whole template.
	Path []string
	// Plain is the given value. For text without expressions it is also the result.
	Plain any
	// Pieces are the pieces of a text with expressions, Entries those of a map, and List the elements of a list.
	Pieces  []Piece
	Entries []Entry
	List    []Template

	// lets: expressions of a whole template use lets.
	lets bool
}

// Entry is an entry of a map. Key has expressions or is plain text.
type Entry struct{ Key, Value Template }

// Template compiles a tree of plain JSON values. The error joins a *shape.Misfit for each fault; their paths begin
// with at.
func (c *Compiler) Template(tree any, at ...string) (*Template, error) {
	b := &builder{compiler: c}
	t := b.template(tree, at)
	if err := errors.Join(b.faults...); err != nil {
		return nil, err
	}
	t.lets = slices.ContainsFunc(t.Programs(), (*Program).usesLets)
	return &t, nil
}

type builder struct {
	compiler *Compiler
	faults   []error
}

func (b *builder) template(value any, at []string) Template {
	t := Template{Path: slices.Clone(at), Plain: value}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := append(slices.Clone(at), key)
			t.Entries = append(t.Entries, Entry{b.text(key, below), b.template(value[key], below)})
		}
	case []any:
		for i, element := range value {
			t.List = append(t.List, b.template(element, append(slices.Clone(at), strconv.Itoa(i))))
		}
	case string:
		return b.text(value, at)
	}
	return t
}

// text compiles a text that may contain expressions.
func (b *builder) text(text string, at []string) Template {
	t := Template{Path: slices.Clone(at), Plain: text}
	pieces, fault := scan(text)
	switch {
	case fault != nil:
		b.faults = append(b.faults, Faults(at, fault)...)
		return t
	case len(pieces) == 1 && pieces[0].isPlain():
		t.Plain = pieces[0].Text
		return t
	}
	t.Pieces = pieces
	before := len(b.faults)
	for i := range pieces {
		p := &pieces[i]
		if p.isPlain() {
			continue
		}
		if len(b.faults)-before >= MostIssues {
			b.faults = append(b.faults, Unread(at, *p))
			return t
		}
		program, err := b.compiler.compile(source{p.Text, p.At})
		b.faults = append(b.faults, Faults(at, err)...)
		p.Program = program
	}
	return t
}

// Unread returns the fault that the expressions of a text from a piece on were not checked, because the text has
// enough faults.
func Unread(at []string, from Piece) error {
	return &shape.Misfit{
		Path: at, Line: from.At.Line, Column: from.At.Column,
		Message: fmt.Sprintf("the text has %d faults before this expression: from here on it was not checked", MostIssues),
	}
}

// Render evaluates the template. The error names the place of the expression that failed. It wraps [ErrMissing] if
// a value is missing, and [ErrTooLarge] if the result exceeds the room. The result shares no values with the
// template.
func (t *Template) Render(s Scope) (any, error) {
	s.Room = s.room()
	if s.Lets == nil && t.lets {
		s.Lets = &LetValues{}
	}
	return t.render(s)
}

func (t *Template) render(s Scope) (any, error) {
	if len(t.Pieces) > 0 {
		return t.renderText(s)
	}
	text, _ := t.Plain.(string)
	if err := t.takes(s, text); err != nil {
		return nil, err
	}
	switch t.Plain.(type) {
	case map[string]any:
		return t.renderMap(s)
	case []any:
		return t.renderList(s)
	}
	return t.Plain, nil
}

func (t *Template) renderList(s Scope) (any, error) {
	out := make([]any, 0, len(t.List))
	for i := range t.List {
		value, err := t.List[i].render(s)
		if err != nil {
			return nil, err
		}
		if value != None {
			out = append(out, value)
		}
	}
	return out, nil
}

// takes counts the texts of the template itself.
func (t *Template) takes(s Scope, text string) error {
	return t.failed(s.Room.value(text))
}

// failed adds the place to an error of the template; nil stays nil.
func (t *Template) failed(err error) error {
	if err == nil {
		return nil
	}
	if len(t.Path) == 0 { // a template of one value, whose place the caller knows
		return err
	}
	return fmt.Errorf("evaluating %s: %w", t.where(), err)
}

func (t *Template) renderMap(s Scope) (any, error) {
	out := make(map[string]any, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		key, err := e.Key.render(s)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("evaluating %s: the key is %s, want text", e.Key.where(), kindOf(key))
		}
		value, err := e.Value.render(s)
		if err != nil {
			return nil, err
		}
		if value != None {
			out[name] = value
		}
	}
	return out, nil
}

func (t *Template) renderText(s Scope) (any, error) {
	if len(t.Pieces) == 1 {
		value, err := t.Pieces[0].Program.Eval(s)
		return value, t.failed(err)
	}
	var out strings.Builder
	for _, p := range t.Pieces {
		if p.Program == nil {
			if err := t.takes(s, p.Text); err != nil {
				return nil, err
			}
			out.WriteString(p.Text)
			continue
		}
		value, err := p.Program.Eval(s)
		if err != nil {
			return nil, t.failed(err)
		}
		switch value.(type) {
		case string, bool, int64, float64:
			out.WriteString(plain.Text(value))
		default:
			return nil, fmt.Errorf("evaluating %s: %s is %s, which cannot be part of a text", t.where(), p.Text, kindOf(value))
		}
	}
	return out.String(), nil
}

// Programs returns the template's expressions, in the order of the tree.
func (t *Template) Programs() (out []*Program) {
	for _, p := range t.Pieces {
		if p.Program != nil {
			out = append(out, p.Program)
		}
	}
	for _, e := range t.Entries {
		out = slices.Concat(out, e.Key.Programs(), e.Value.Programs())
	}
	for _, element := range t.List {
		out = append(out, element.Programs()...)
	}
	return out
}

// Fields returns the paths that the template sets, as far as its keys are written there: a map with a computed key counts whole,
// and so does a list.
func (t *Template) Fields() [][]string {
	computed := func(e Entry) bool { return len(e.Key.Pieces) > 0 }
	if len(t.Entries) == 0 || slices.ContainsFunc(t.Entries, computed) {
		return [][]string{nil}
	}
	var out [][]string
	for _, e := range t.Entries {
		key, _ := e.Key.Plain.(string)
		for _, path := range e.Value.Fields() {
			out = append(out, append([]string{key}, path...))
		}
	}
	return out
}

// Written returns the text of a template that is text, with the lets that its expressions use written out.
func (t *Template) Written() string {
	text, _ := t.Plain.(string)
	if !slices.ContainsFunc(t.Programs(), (*Program).usesLets) {
		return text
	}
	var out strings.Builder
	for _, p := range t.Pieces {
		if p.Program == nil {
			out.WriteString(p.Text)
			continue
		}
		out.WriteString("${" + p.Program.Written() + "}")
	}
	return out.String()
}

// Uses reports whether an expression refers to the variable.
func (t *Template) Uses(variable string) bool {
	return slices.ContainsFunc(t.Programs(), func(p *Program) bool { return p.Uses(variable) })
}

func (t *Template) where() string { return strings.Join(t.Path, ".") }

// kindOf describes a plain value to people who write YAML.
func kindOf(value any) string {
	if value == None {
		return "nothing"
	}
	return named(types.DefaultTypeAdapter.NativeToValue(value).Type().TypeName())
}
