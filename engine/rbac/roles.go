// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"
)

// Role is a set of rights in one namespace, or everywhere.
type Role struct {
	// Namespace is empty for a role of the cluster.
	Namespace string
	// Policies are the rights, a policy for each resource, sorted.
	Policies []Policy
}

// Policy is what a role allows of one resource.
type Policy struct {
	// Group is the API group, Resource the plural, with a subresource behind a slash.
	Group, Resource string
	// Names are the only objects. Empty means any.
	Names []string
	// Verbs are in the order in which people write them.
	Verbs []string
	// Reasons say for people who needs what of it, a line each.
	Reasons []string
}

// Roles puts rights, in the order of [Of], together: a role for each namespace, that of the cluster
// first.
func Roles(rules []Rule) []Role {
	var out []Role
	for _, group := range chunks(rules, func(a, b Rule) bool { return a.Namespace == b.Namespace }) {
		role := Role{Namespace: group[0].Namespace}
		for _, same := range chunks(group, func(a, b Rule) bool { return a.Target() == b.Target() && a.Name == b.Name }) {
			role.Policies = append(role.Policies, policy(same))
		}
		out = append(out, role)
	}
	return out
}

// policy makes one of rights that differ in their verbs.
func policy(rules []Rule) Policy {
	first := merged(rules...)
	out := Policy{Group: first.Group, Resource: first.Resource}
	if first.Subresource != "" {
		out.Resource += "/" + first.Subresource
	}
	if first.Name != "" {
		out.Names = []string{first.Name}
	}
	for _, r := range rules {
		out.Verbs = append(out.Verbs, r.Verb)
	}
	for _, reason := range first.Reasons {
		out.Reasons = append(out.Reasons, reason.String()+" ("+verbsFor(rules, reason)+")")
	}
	return out
}

// verbsFor are the verbs that are needed for a reason.
func verbsFor(rules []Rule, reason Reason) string {
	var verbs []string
	optional := ""
	for _, r := range rules {
		if slices.Contains(r.Reasons, reason) {
			verbs = append(verbs, r.Verb)
			if r.Optional {
				optional = "; optional"
			}
		}
	}
	return strings.Join(verbs, ", ") + optional
}

// chunks cuts a list where neighbours are not the same.
func chunks(rules []Rule, same func(a, b Rule) bool) (out [][]Rule) {
	for i, r := range rules {
		if i == 0 || !same(rules[i-1], r) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}
