// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Missing returns the parts of the wanted rules that the others do not have, each with all verbs of one resource.
func Missing(have, want []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range want {
		for _, part := range parts(rule) {
			if !slices.ContainsFunc(have, func(r rbacv1.PolicyRule) bool { return includes(r, part) }) {
				out = merge(out, part)
			}
		}
	}
	return out
}

// merge adds a part to those with the same resource, or as one of its own.
func merge(rules []rbacv1.PolicyRule, part rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i, r := range rules {
		if slices.Equal(r.APIGroups, part.APIGroups) && slices.Equal(r.Resources, part.Resources) &&
			slices.Equal(r.ResourceNames, part.ResourceNames) && slices.Equal(r.NonResourceURLs, part.NonResourceURLs) {
			rules[i].Verbs = append(slices.Clone(r.Verbs), part.Verbs...)
			return rules
		}
	}
	return append(rules, part)
}

// parts splits a rule into rules of one verb each for one resource, name or path.
func parts(r rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, verb := range r.Verbs {
		verbs := []string{verb}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				part := rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}
				if len(r.ResourceNames) == 0 {
					out = append(out, part)
				}
				for _, name := range r.ResourceNames {
					part.ResourceNames = []string{name}
					out = append(out, part)
				}
			}
		}
		for _, url := range r.NonResourceURLs {
			out = append(out, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: []string{url}})
		}
	}
	return out
}

// includes reports whether a rule has all that a part of one has.
func includes(r, part rbacv1.PolicyRule) bool {
	if !has(r.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool { return covers(pattern, part.NonResourceURLs[0]) })
	}
	resource, subresource, _ := strings.Cut(part.Resources[0], "/")
	if !has(r.APIGroups, part.APIGroups[0]) || !hasResource(r.Resources, resource, subresource) {
		return false
	}
	return len(r.ResourceNames) == 0 || len(part.ResourceNames) > 0 && slices.Contains(r.ResourceNames, part.ResourceNames[0])
}

// Describe returns a rule as the API server writes it in the refusal of an escalation.
func Describe(r rbacv1.PolicyRule) string {
	var out []string
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(field.values) > 0 {
			out = append(out, fmt.Sprintf("%s:%q", field.name, field.values))
		}
	}
	return "{" + strings.Join(out, ", ") + "}"
}
