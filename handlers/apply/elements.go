// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// elements returns the elements for which a child has objects, sorted by key. A child without forEach has one
// element without a key.
func (c *child) elements(scope func(vars map[string]any) expr.Scope) ([]expr.Element, error) {
	if c.forEach == nil {
		return []expr.Element{{}}, nil
	}
	each := expr.Each{Of: c.forEach, Key: c.key, Most: c.limit}
	list, err := each.Elements(scope)
	if many, is := errors.AsType[*expr.TooManyError](err); is {
		return nil, dsl.Permanent(wrong(reasonTooMany, "%w", many))
	}
	return list, err
}

// typeOf describes the type of a value, and not the value, which may be a secret.
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
