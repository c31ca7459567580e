// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// element is what there is one object for: an element of forEach, or the child itself.
type element struct {
	key  string
	vars map[string]any
}

// elements returns the elements of a child, sorted by key. A child without forEach has one, which
// has no key.
func (p *pass) elements(c *child, scope expr.Scope) ([]element, error) {
	if c.forEach == nil {
		return []element{{}}, nil
	}
	given, err := c.forEach.Render(scope)
	if err != nil {
		return nil, err
	}
	var out []element
	switch given := given.(type) {
	case []any:
		for i, value := range given {
			out = append(out, element{vars: map[string]any{itemVar: value, valueVar: value, indexVar: int64(i)}})
		}
	case map[string]any:
		for i, key := range slices.Sorted(maps.Keys(given)) {
			vars := map[string]any{itemVar: given[key], valueVar: given[key], indexVar: int64(i), keyVar: key}
			out = append(out, element{key: key, vars: vars})
		}
	default:
		if given != nil && given != expr.None {
			return nil, fmt.Errorf("forEach gives %s, want a list or a map", typeOf(given))
		}
	}
	if len(out) > c.limit {
		return nil, dsl.Permanent(wrong(reasonTooMany, "forEach has %d items, and the limit is %d", len(out), c.limit))
	}
	return p.keyed(c, out)
}

// keyed gives each element its key.
func (p *pass) keyed(c *child, list []element) ([]element, error) {
	seen := map[string]bool{}
	for i := range list {
		e := &list[i]
		if err := p.setKey(c, e); err != nil {
			return nil, fmt.Errorf("item %d of forEach: %w", i, err)
		}
		if seen[e.key] {
			return nil, fmt.Errorf("two items of forEach have the key %q", e.key)
		}
		seen[e.key] = true
		e.vars[keyVar] = e.key
	}
	slices.SortFunc(list, func(a, b element) int { return strings.Compare(a.key, b.key) })
	return list, nil
}

func (p *pass) setKey(c *child, e *element) error {
	value := e.vars[itemVar]
	switch {
	case c.key != nil:
		var err error
		if value, err = c.key.Render(p.scope(e.vars)); err != nil {
			return err
		}
	case e.key != "":
		return nil // that of the map
	}
	switch value := value.(type) {
	case string:
		e.key = value
	case int64:
		e.key = strconv.FormatInt(value, 10)
	case float64:
		e.key = strconv.FormatFloat(value, 'f', -1, 64)
	default:
		if c.key == nil {
			return fmt.Errorf("it has no key: say with key which one it is, as in key: ${item.name}")
		}
		return fmt.Errorf("its key is %s, want text or a number", typeOf(value))
	}
	if e.key == "" {
		return fmt.Errorf("its key is empty")
	}
	return nil
}

// typeOf says what a value is, and not which: it may be a secret.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case int64, float64:
		return "a number"
	}
	return "nothing"
}
