// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"
)

// Role is a set of rights in one namespace, or in the whole cluster.
type Role struct {
	// Namespace is empty for a ClusterRole.
	Namespace string
	// Policies are the rights, one policy for each resource, sorted.
	Policies []Policy
}

// Policy is what a role allows on one resource.
type Policy struct {
	// Group is the API group, Resource the plural, with a subresource behind a slash.
	Group, Resource string
	// Names limit it to objects of these names. Empty means any.
	Names []string
	// Verbs are in the usual order.
	Verbs []string
	// Reasons say for people who needs the rights, one line each.
	Reasons []string
}

// Roles groups rights, in the order of [Of], to roles: one for each namespace, with the ClusterRole first.
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

// policy joins rights that differ in their verbs.
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

// verbsFor returns the verbs that are needed for a reason.
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

// chunks splits a list where neighbours differ.
func chunks(rules []Rule, same func(a, b Rule) bool) (out [][]Rule) {
	for i, r := range rules {
		if i == 0 || !same(rules[i-1], r) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}
