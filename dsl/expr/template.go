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

	"github.com/handwerk-dev/handwerk/dsl"
)

// Template is a tree of plain values with ${…} in its texts and keys. A text that is one ${…} and
// nothing else becomes the expression's value, whatever its type; in a longer text the value is
// written as text. What is worked out as an optional that is not there is left out of its map or
// list. $${ stands for ${ itself. It is safe for use by several goroutines.
type Template struct {
	root node
}

// node is a part of a template.
type node struct {
	path []string
	// One of these: a plain value, a text with expressions, a map, a list.
	plain   any
	pieces  []part
	entries []entry
	list    []node
	kind    nodeKind
}

type nodeKind int

const (
	plainNode nodeKind = iota
	textNode
	mapNode
	listNode
)

// part is a piece of a text, compiled where it is an expression.
type part struct {
	piece
	program *Program
}

// entry is an entry of a map. Key has expressions or is plain text.
type entry struct {
	key   node
	value node
}

// Template compiles a tree: what JSON decodes to. The error joins a *dsl.ConfigError for each
// fault; the paths begin with at.
func (c *Compiler) Template(tree any, at ...string) (*Template, error) {
	b := &builder{compiler: c}
	t := &Template{root: b.node(tree, at)}
	if err := errors.Join(b.faults...); err != nil {
		return nil, err
	}
	return t, nil
}

type builder struct {
	compiler *Compiler
	faults   []error
}

func (b *builder) node(value any, at []string) node {
	n := node{path: slices.Clone(at), plain: value}
	switch value := value.(type) {
	case map[string]any:
		n.kind = mapNode
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := append(slices.Clone(at), key)
			n.entries = append(n.entries, entry{key: b.text(key, below), value: b.node(value[key], below)})
		}
	case []any:
		n.kind = listNode
		for i, element := range value {
			n.list = append(n.list, b.node(element, append(slices.Clone(at), strconv.Itoa(i))))
		}
	case string:
		return b.text(value, at)
	}
	return n
}

// text compiles a text that may have expressions in it.
func (b *builder) text(text string, at []string) node {
	n := node{path: slices.Clone(at), plain: text}
	pieces, fault := scan(text)
	if fault != nil {
		b.fault(at, fault, 1, 1)
		return n
	}
	before := len(b.faults)
	for _, p := range pieces {
		if !p.expression {
			n.pieces = append(n.pieces, part{piece: p})
			continue
		}
		n.kind = textNode
		if len(b.faults)-before >= mostIssues {
			b.faults = append(b.faults, unread(at, p))
			return n
		}
		program, err := b.compiler.Value(p.text)
		if err != nil {
			b.fault(at, err, p.line, p.column)
			continue
		}
		n.pieces = append(n.pieces, part{p, program})
	}
	if n.kind == plainNode && len(n.pieces) == 1 {
		n.plain, n.pieces = n.pieces[0].text, nil
	}
	return n
}

// fault notes what is wrong with an expression that begins at a line and column of its text.
func (b *builder) fault(at []string, err error, line, column int) {
	b.faults = append(b.faults, placed(at, err, line, column)...)
}

// unread says that the expressions of a text from a piece on were not looked at, because enough is wrong
// with it.
func unread(at []string, from piece) error {
	return &dsl.ConfigError{
		Path: at, Line: from.line, Column: from.column,
		Message: fmt.Sprintf("the text has %d faults before this expression: from here on it was not checked", mostIssues),
	}
}

// placed turns the faults of an expression, which begins at a line and column of the text that it
// stands in, into those of a configuration.
func placed(at []string, err error, line, column int) (out []error) {
	faulty, ok := errors.AsType[*Error](err)
	if !ok {
		return []error{&dsl.ConfigError{Path: at, Message: err.Error()}}
	}
	for _, issue := range faulty.Issues {
		if issue.Line == 1 {
			issue.Column += column - 1
		}
		out = append(out, &dsl.ConfigError{
			Path: at, Line: issue.Line + line - 1, Column: issue.Column, Message: issue.Message,
		})
	}
	return out
}

// Render evaluates the template. The error names the place of the expression that failed; one that
// came upon something missing wraps [ErrMissing], one that there is no room for [ErrTooLarge]. The
// result shares nothing with the template.
func (t *Template) Render(s Scope) (any, error) {
	s.Room = s.room()
	return t.root.render(s)
}

func (n *node) render(s Scope) (any, error) {
	switch n.kind {
	case textNode:
		return n.renderText(s)
	case mapNode:
		return n.renderMap(s)
	case listNode:
		if err := n.takes(s, ""); err != nil {
			return nil, err
		}
		out := make([]any, 0, len(n.list))
		for i := range n.list {
			value, err := n.list[i].render(s)
			if err != nil {
				return nil, err
			}
			if value != None {
				out = append(out, value)
			}
		}
		return out, nil
	default:
		text, _ := n.plain.(string)
		return n.plain, n.takes(s, text)
	}
}

// takes counts what the template itself gives.
func (n *node) takes(s Scope, text string) error {
	if err := s.Room.value(text); err != nil {
		return fmt.Errorf("evaluating %s: %w", where(n.path), err)
	}
	return nil
}

func (n *node) renderMap(s Scope) (any, error) {
	if err := n.takes(s, ""); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(n.entries))
	for i := range n.entries {
		e := &n.entries[i]
		key, err := e.key.render(s)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("evaluating %s: the key is %s, want text", where(e.key.path), kindOf(key))
		}
		value, err := e.value.render(s)
		if err != nil {
			return nil, err
		}
		if value != None {
			out[name] = value
		}
	}
	return out, nil
}

func (n *node) renderText(s Scope) (any, error) {
	if len(n.pieces) == 1 {
		value, err := n.pieces[0].program.Eval(s)
		if err != nil {
			return nil, fmt.Errorf("evaluating %s: %w", where(n.path), err)
		}
		return value, nil
	}
	var out strings.Builder
	for _, p := range n.pieces {
		if p.program == nil {
			if err := n.takes(s, p.text); err != nil {
				return nil, err
			}
			out.WriteString(p.text)
			continue
		}
		value, err := p.program.Eval(s)
		if err != nil {
			return nil, fmt.Errorf("evaluating %s: %w", where(n.path), err)
		}
		switch value.(type) {
		case string, bool, int64, float64:
			fmt.Fprint(&out, value)
		default:
			return nil, fmt.Errorf("evaluating %s: %s is %s, which cannot be part of a text", where(n.path), p.text, kindOf(value))
		}
	}
	return out.String(), nil
}

// Programs returns the template's expressions, in the order of the tree.
func (t *Template) Programs() []*Program {
	var out []*Program
	t.root.each(func(n *node) {
		for _, p := range n.pieces {
			if p.program != nil {
				out = append(out, p.program)
			}
		}
	})
	return out
}

// Uses reports whether an expression refers to the variable.
func (t *Template) Uses(variable string) bool {
	return slices.ContainsFunc(t.Programs(), func(p *Program) bool { return p.Uses(variable) })
}

// each visits every part of the template.
func (n *node) each(visit func(*node)) {
	visit(n)
	for i := range n.entries {
		n.entries[i].key.each(visit)
		n.entries[i].value.each(visit)
	}
	for i := range n.list {
		n.list[i].each(visit)
	}
}

func where(path []string) string { return strings.Join(path, ".") }

// kindOf describes a plain value to people who write YAML.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return "nothing"
	}
}
