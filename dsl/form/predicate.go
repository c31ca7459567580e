// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

var _ Form = (*Predicate)(nil)

// Predicate is the text of an expression that is true or false, CEL alone or one ${…}; empty where there is none.
type Predicate string

// ReadForm takes text, true or false.
func (p *Predicate) ReadForm(d *Decoder, at Path, n *yaml.Node) bool {
	text := strings.TrimRight(n.Value, " \n")
	if n.Kind != yaml.ScalarNode || !IsText(n) && n.Tag != "!!bool" || text == "" {
		d.FaultAt(n, at, "want an expression that is true or false, found %s", Found(n))
		return false
	}
	if always := false; n.Tag == "!!bool" && n.Decode(&always) == nil {
		text = strconv.FormatBool(always) // True is none in CEL
	}
	*p = Predicate(text)
	return true
}

// DescribeForm describes all of it.
func (p *Predicate) DescribeForm(*Describer) *Schema {
	return &Schema{OneOf: []*Schema{{Type: "string", MinLength: 1}, {Type: "boolean"}}}
}
