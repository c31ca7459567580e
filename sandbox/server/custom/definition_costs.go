// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of the estimated costs of a rule and of all rules of a schema, in CEL's units.
const (
	ruleLimit   = 10_000_000
	schemaLimit = 100_000_000
)

// costs are those of the rules of a schema.
type costs struct {
	all uint64
	// most are the most expensive rules, up to four, with at least a hundredth of the limit each.
	most []cost
}

type cost struct {
	path *field.Path
	n    uint64
}

// add adds the cost of a rule, and returns an error if it is too much. what names it in the error.
func (c *costs) add(path *field.Path, what string, n uint64) (out field.ErrorList) {
	if n > ruleLimit {
		out = append(out, field.Forbidden(path, tooMuch(what, n, ruleLimit)))
	}
	c.all += min(n, math.MaxUint64-c.all)
	if n < schemaLimit/100 {
		return out
	}
	c.most = append(c.most, cost{path, n})
	slices.SortStableFunc(c.most, func(a, b cost) int { return cmp.Compare(b.n, a.n) })
	const shown = 4
	c.most = c.most[:min(len(c.most), shown)]
	return out
}

// exceeded returns errors if all rules together cost too much.
func (c *costs) exceeded(path *field.Path) (out field.ErrorList) {
	if c.all <= schemaLimit {
		return nil
	}
	for _, each := range c.most {
		out = append(out, field.Forbidden(each.path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	return append(out, field.Forbidden(path, tooMuch("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", c.all, schemaLimit)))
}

// tooMuch says by which factor a cost exceeds its limit.
func tooMuch(what string, n, limit uint64) string {
	factor := float64(n) / float64(limit)
	text := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		text = "more than 100x"
	case factor < 1.5:
		text = fmt.Sprintf("%fx", factor)
	}
	return what + " exceeds budget by factor of " + text +
		" (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}

// times multiplies, up to the largest number.
func times(a, b uint64) uint64 {
	if a != 0 && math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}

// elements returns how many elements an object of a schema has at most; nil means that there is no limit.
func elements(s *apiextensions.JSONSchemaProps) *uint64 {
	most, limited := (*int64)(nil), false
	switch {
	case s.Type == "object" && s.AdditionalProperties != nil:
		most, limited = s.MaxProperties, true
	case s.Type == "array":
		most, limited = s.MaxItems, true
	}
	n := uint64(1)
	if limited {
		if most == nil {
			return nil
		}
		n = uint64(max(*most, 0))
	}
	return &n
}
