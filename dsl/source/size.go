// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// A configuration's limits, counting again what aliases repeat. A compiled expression holds 18 KB, so
// all of them hold less than 100 MB.
const (
	maxValues         = 100_000
	maxText           = 8 << 20
	maxExpressions    = 5_000
	maxExpressionText = 512 << 10
)

// Size is how much there is in a part of a configuration, counting again what aliases repeat.
type Size struct {
	// values are maps, their keys, lists and scalars; text is how many bytes the scalars have.
	values, text int
	// expressions are counted by what begins them; written is how many bytes the texts have that they
	// stand in.
	expressions, written int
}

// predicates are the keys whose text is an expression without ${…}.
func predicates() []string { return []string{"when", "where", "includeWhen", "readyWhen"} }

// sizeOf measures a node without what is below it. An expression without ${…} is known by its key, so
// it is counted with its map.
func sizeOf(n *yaml.Node) Size {
	out := Size{values: 1}
	if n.Kind == yaml.ScalarNode {
		out.text = len(n.Value)
		if out.expressions = strings.Count(n.Value, "${"); out.expressions > 0 {
			out.written = out.text
		}
	}
	if n.Kind != yaml.MappingNode {
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.ScalarNode && slices.Contains(predicates(), key.Value) && !strings.Contains(value.Value, "${") {
			out.expressions++
			out.written += len(value.Value)
		}
	}
	return out
}

// plus adds sizes, up to one that is far too large in any case.
func (s Size) plus(other Size) Size {
	add := func(a, b int) int { return min(a+b, 1<<40) }
	return Size{
		values: add(s.values, other.values), text: add(s.text, other.text),
		expressions: add(s.expressions, other.expressions), written: add(s.written, other.written),
	}
}

// Excess says which limit a size is over, empty when it is over none.
func (s Size) Excess() string {
	switch {
	case s.values > maxValues:
		return fmt.Sprintf("%d values", maxValues)
	case s.text > maxText:
		return fmt.Sprintf("%d MiB of text", maxText>>20)
	case s.expressions > maxExpressions:
		return fmt.Sprintf("%d expressions", maxExpressions)
	case s.written > maxExpressionText:
		return fmt.Sprintf("%d KiB of text with expressions in it", maxExpressionText>>10)
	}
	return ""
}
