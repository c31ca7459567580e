// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	_ Form = (*Texts)(nil)
	_ Form = (*Predicate)(nil)
	_ Form = (*Expression)(nil)
)

// Texts is one text or a list of them.
type Texts []string

// ReadForm reads the text or the list.
func (t *Texts) ReadForm(d *Decoder, at Path, n *yaml.Node) bool {
	switch n.Kind {
	case yaml.SequenceNode:
		return d.Value(at, n, (*[]string)(t))
	case yaml.MappingNode:
		d.FaultAt(n, at, "want text or a list, found a map")
		return false
	}
	var one string
	ok := d.Filled(at, n, &one)
	*t = Texts{one}
	return ok
}

// DescribeForm describes the text and the list.
func (t *Texts) DescribeForm(*Describer) *Schema {
	text := &Schema{Type: "string", MinLength: 1}
	return &Schema{OneOf: []*Schema{text, {Type: "array", Items: text, MinItems: 1}}}
}

// Predicate is the text of an expression that is true or false, plain CEL or one ${…}; empty for none.
type Predicate string

// ReadForm accepts text, true or false.
func (p *Predicate) ReadForm(d *Decoder, at Path, n *yaml.Node) bool {
	text, is := codeIn(n, "!!bool")
	if !is {
		d.FaultAt(n, at, "want an expression that is true or false, found %s", Found(n))
		return false
	}
	*p = Predicate(text)
	return true
}

// codeIn returns the expression that a scalar is: a text, or a value with one of the tags.
func codeIn(n *yaml.Node, tags ...string) (text string, is bool) {
	text = strings.TrimRight(n.Value, " \n")
	if n.Kind != yaml.ScalarNode || !IsText(n) && !slices.Contains(tags, n.Tag) || text == "" {
		return "", false
	}
	if always := false; n.Tag == "!!bool" && n.Decode(&always) == nil {
		text = strconv.FormatBool(always) // CEL has true, and not True
	}
	return text, true
}

// DescribeForm describes the accepted values.
func (p *Predicate) DescribeForm(*Describer) *Schema {
	return &Schema{Called: "CEL condition", OneOf: []*Schema{{Type: "string", MinLength: 1}, {Type: "boolean"}}}
}

// Expression is the text of an expression of any type, plain CEL or one ${…}; empty for none.
type Expression string

// ReadForm accepts text, a number, true or false.
func (e *Expression) ReadForm(d *Decoder, at Path, n *yaml.Node) bool {
	text, is := codeIn(n, "!!bool", "!!int", "!!float")
	if !is {
		d.FaultAt(n, at, "want an expression, found %s", Found(n))
		return false
	}
	*e = Expression(text)
	return true
}

// DescribeForm describes the accepted values.
func (e *Expression) DescribeForm(*Describer) *Schema {
	return &Schema{Called: "CEL expression", OneOf: []*Schema{{Type: "string", MinLength: 1}, {Type: "boolean"}, {Type: "number"}}}
}
