// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import "gopkg.in/yaml.v3"

var (
	_ Form = (*Items)(nil)
	_ Form = (*ItemKey)(nil)
)

// WantItems describes valid [Items].
const WantItems = "want a list or a map, mostly an expression as in ${self.spec.users}"

// Items are the input of forEach and the like: a list, a map, or text with an expression for one of these.
type Items struct {
	// Value is nil if it is absent or has a fault.
	Value any
}

// ReadForm accepts a list, a map or text.
func (i *Items) ReadForm(d *Decoder, at Path, n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && !IsText(n) {
		d.FaultAt(n, at, "%s, found %s", WantItems, Found(n))
		return false
	}
	i.Value, _ = d.Plain(at, n)
	return true
}

// DescribeForm describes all three.
func (i *Items) DescribeForm(*Describer) *Schema {
	return &Schema{Called: "${…}, list or map", OneOf: []*Schema{WithExpression(), {Type: "array", Items: &Schema{}}, {Type: "object"}}}
}

// WithExpression describes text with an expression in it.
func WithExpression() *Schema {
	return &Schema{Called: "${…}", Type: "string", Pattern: `\$\{`, PatternErrorMessage: "want an expression as in ${self.spec.users}"}
}

// ItemKey is text with an expression for the key of each of [Items]; empty for none.
type ItemKey string

// ReadForm accepts text.
func (k *ItemKey) ReadForm(d *Decoder, at Path, n *yaml.Node) bool {
	if !IsText(n) {
		d.FaultAt(n, at, "want an expression as in ${item.name}, found %s", Found(n))
		return false
	}
	*k = ItemKey(n.Value)
	return true
}

// DescribeForm describes text.
func (k *ItemKey) DescribeForm(*Describer) *Schema {
	return &Schema{Called: "text with ${…}", Type: "string", MinLength: 1}
}
