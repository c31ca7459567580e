// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Node returns a node for a plain value, as from [Decoder.Plain]; it has no place.
func Node(value any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch value := value.(type) {
	case nil:
		return scalar("!!null", "null")
	case string:
		return scalar("!!str", value)
	case bool:
		return scalar("!!bool", strconv.FormatBool(value))
	case float32, float64:
		return scalar("!!float", fmt.Sprint(value))
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, element := range value {
			out.Content = append(out.Content, Node(element))
		}
		return out
	case map[string]any:
		out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			out.Content = append(out.Content, Node(key), Node(value[key]))
		}
		return out
	default:
		return scalar("!!int", fmt.Sprint(value))
	}
}

// Plain reads a value whose form is up to the author, as plain JSON with int64 and float64 for numbers.
func (d *Decoder) Plain(at Path, n *yaml.Node) (any, bool) {
	d.values[at] = n
	switch n.Kind {
	case yaml.MappingNode:
		out, all := map[string]any{}, true
		ok := d.Entries(at, n, func(name string, at Path, value *yaml.Node) {
			element, ok := d.Plain(at, value)
			out[name] = element
			all = all && ok
		})
		return out, ok && all
	case yaml.SequenceNode:
		out, all := make([]any, len(n.Content)), true
		for i, element := range n.Content {
			value, ok := d.Plain(at.Index(i), element)
			out[i] = value
			all = all && ok
		}
		return out, all
	default:
		return d.plainScalar(at, n)
	}
}

func (d *Decoder) plainScalar(at Path, n *yaml.Node) (any, bool) {
	if IsText(n) {
		return n.Value, true
	}
	var value any
	if err := n.Decode(&value); err != nil {
		d.FaultAt(n, at, "%s cannot be read", Found(n))
		return nil, false
	}
	switch number := value.(type) {
	case int:
		return int64(number), true
	case uint64:
		d.FaultAt(n, at, "the number is too large")
		return nil, false
	case float64:
		if math.IsNaN(number) || math.IsInf(number, 0) {
			d.FaultAt(n, at, "want a number that JSON can hold, found %s", n.Value)
			return nil, false
		}
	}
	return value, true
}
