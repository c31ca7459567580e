// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"

	"gopkg.in/yaml.v3"
)

// plain reads a value whose form is the author's own: what JSON can hold, with int64 and float64
// for numbers.
func (d *decoder) plain(p path, n *yaml.Node) (any, bool) {
	d.values[p] = n
	switch n.Kind {
	case yaml.MappingNode:
		out, all := map[string]any{}, true
		ok := d.entries(p, n, func(name string, at path, value *yaml.Node) {
			element, ok := d.plain(at, value)
			out[name] = element
			all = all && ok
		})
		return out, ok && all
	case yaml.SequenceNode:
		out, all := make([]any, len(n.Content)), true
		for i, element := range n.Content {
			value, ok := d.plain(p.index(i), element)
			out[i] = value
			all = all && ok
		}
		return out, all
	default:
		return d.plainScalar(p, n)
	}
}

func (d *decoder) plainScalar(p path, n *yaml.Node) (any, bool) {
	if isText(n) {
		return n.Value, true
	}
	var value any
	if err := n.Decode(&value); err != nil {
		d.faultAt(n, p, "%s cannot be read", found(n))
		return nil, false
	}
	switch number := value.(type) {
	case int:
		return int64(number), true
	case uint64:
		d.faultAt(n, p, "the number is too large")
		return nil, false
	case float64:
		if math.IsNaN(number) || math.IsInf(number, 0) {
			d.faultAt(n, p, "want a number that JSON can hold, found %s", n.Value)
			return nil, false
		}
	}
	return value, true
}
