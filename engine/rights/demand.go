// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import "slices"

// Demand is one right in all namespaces where it is needed.
type Demand struct {
	// Rule is the right; its Namespace is empty.
	Rule
	// Namespaces are where it is needed, sorted. One that is empty means everywhere. Never empty.
	Namespaces []string
}

// Demands puts rights together that differ in their namespace alone. They come sorted by resource,
// whatever their namespaces.
func Demands(rules []Rule) []Demand {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int {
		one, other := a, b
		one.Namespace, other.Namespace = "", ""
		if order := compare(one, other); order != 0 {
			return order
		}
		return compare(a, b)
	})
	var out []Demand
	for _, r := range rules {
		namespace := r.Namespace
		r.Namespace = ""
		if last := len(out) - 1; last >= 0 && compare(out[last].Rule, r) == 0 {
			out[last].Rule = merged(out[last].Rule, r)
			out[last].Namespaces = append(out[last].Namespaces, namespace)
			continue
		}
		out = append(out, Demand{Rule: r, Namespaces: []string{namespace}})
	}
	return out
}
