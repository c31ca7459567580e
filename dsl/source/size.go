// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// The limits of a configuration. What aliases repeat counts each time. A compiled expression takes 18 KB, so all of
// them take less than 100 MB.
const (
	maxValues         = 100_000
	maxText           = 8 << 20
	maxExpressions    = 5_000
	maxExpressionText = 512 << 10
)

// Size is the size of a part of a configuration. What aliases repeat counts each time.
type Size struct {
	// values counts maps, their keys, lists and scalars; text is the size of the scalars in bytes.
	values, text int
	// expressions counts the beginnings of expressions; written is the size of the texts that contain them, in
	// bytes.
	expressions, written int
}

// predicates returns the keys whose text is an expression without ${…}.
func predicates() []string { return []string{"when", "where", "includeWhen", "readyWhen"} }

// sizeOf returns the size of a node without those below it. Expressions without ${…} are recognised by their key,
// so they count with their map.
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

// plus adds sizes, up to a limit far above the allowed ones.
func (s Size) plus(other Size) Size {
	add := func(a, b int) int { return min(a+b, 1<<40) }
	return Size{
		values: add(s.values, other.values), text: add(s.text, other.text),
		expressions: add(s.expressions, other.expressions), written: add(s.written, other.written),
	}
}

// Excess names the limit that a size exceeds; empty if it exceeds none.
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
