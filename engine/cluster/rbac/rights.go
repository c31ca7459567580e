// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbac computes the rights that an operator's account needs: those of the engine for each resource (of.go,
// resource.go), and those that handlers declare. It makes roles of them (roles.go), and asks a reviewer which are
// missing. It sends no requests itself.
package rbac

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorization "k8s.io/api/authorization/v1"
)

// Rule is one right: one verb on one resource, in one namespace or in the whole cluster.
type Rule struct {
	// Group and Resource name the resource by its plural; Subresource is a subresource, as in "status".
	Group, Resource, Subresource string
	// Verb is a verb of RBAC.
	Verb string
	// Name limits it to one object. Empty means any.
	Name string
	// Namespace is the namespace. Empty means the whole cluster, as for cluster-scoped resources.
	Namespace string
	// Namespaced: its objects are namespaced.
	Namespaced bool
	// Reasons say who needs it. Never empty.
	Reasons []Reason
	// Optional: without it, only the purposes in the reasons fail.
	Optional bool
}

// Reason says for people who needs a right, and for what.
type Reason struct {
	// Who is [Engine], or "handler" with the resource and the id, as in "handler foos/status".
	Who string
	// Why is the purpose.
	Why string
}

// String returns the reason as a sentence without a full stop.
func (r Reason) String() string {
	if r.Why == "" {
		return r.Who
	}
	return r.Who + ": " + r.Why
}

// String names the right, as in "patch foos.samplecontroller.k8s.io/status in namespace a".
func (r Rule) String() string {
	out := r.Verb + " " + r.Target()
	if r.Name != "" {
		out += " " + r.Name
	}
	if r.Namespace != "" {
		out += " in namespace " + r.Namespace
	}
	return out
}

// Target is the resource with its group and subresource, as in "foos.samplecontroller.k8s.io/status".
func (r Rule) Target() string {
	out := r.Resource
	if r.Group != "" {
		out += "." + r.Group
	}
	if r.Subresource != "" {
		out += "/" + r.Subresource
	}
	return out
}

// right is what a rule allows.
type right struct{ group, resource, subresource, verb, name, namespace string }

func (r Rule) right() right {
	return right{r.Group, r.Resource, r.Subresource, r.Verb, r.Name, r.Namespace}
}

// wider returns the other rights that include this one: to all verbs, on all objects, in all namespaces.
func (r right) wider() (out []right) {
	for _, verb := range []string{r.verb, "*"} {
		for _, name := range []string{r.name, ""} {
			for _, namespace := range []string{r.namespace, ""} {
				wide := r
				wide.verb, wide.name, wide.namespace = verb, name, namespace
				if wide != r && !slices.Contains(out, wide) {
					out = append(out, wide)
				}
			}
		}
	}
	return out
}

// Has reports whether the rules allow a verb on a resource, in any namespace and on any of its objects.
func Has(rules []Rule, group, resource, subresource, verb string) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return r.Group == group && r.Resource == resource && r.Subresource == subresource && (r.Verb == verb || r.Verb == "*")
	})
}

// verbs returns the usual verbs in the usual order.
func verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

// compareVerbs compares verbs in the usual order; unusual ones come last, by name.
func compareVerbs(a, b string) int {
	place := func(verb string) int {
		if i := slices.Index(verbs(), verb); i >= 0 {
			return i
		}
		return len(verbs())
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

func compare(a, b Rule) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), compareAnywhere(a, b))
}

// compareAnywhere is compare without namespaces.
func compareAnywhere(a, b Rule) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Subresource, b.Subresource), strings.Compare(a.Name, b.Name), compareVerbs(a.Verb, b.Verb),
	)
}

// Reviewer asks whether an account has a right, mostly by a SelfSubjectAccessReview.
type Reviewer func(context.Context, authorization.ResourceAttributes) (allowed bool, err error)

// Attributes returns the right in the form for a review.
func (r Rule) Attributes() authorization.ResourceAttributes {
	return authorization.ResourceAttributes{
		Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		Verb: r.Verb, Name: r.Name, Namespace: r.Namespace,
	}
}

// Check asks for each right and returns those that are missing, in order. An error means that the
// reviewer could not be asked.
func Check(ctx context.Context, review Reviewer, rules []Rule) (missing []Rule, err error) {
	for _, r := range rules {
		allowed, err := review(ctx, r.Attributes())
		if err != nil {
			return nil, fmt.Errorf("reviewing the right to %s: %w", r, err)
		}
		if !allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// Demand is one right with all namespaces where it is needed.
type Demand struct {
	// Rule is the right; its Namespace is empty.
	Rule
	// Namespaces are the namespaces, sorted. An empty one means the whole cluster. There is at least one.
	Namespaces []string
}

// Demands joins rights that differ only in their namespace. They are sorted by resource.
func Demands(rules []Rule) []Demand {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Or(compareAnywhere(a, b), compare(a, b)) })
	var out []Demand
	for _, same := range chunks(rules, func(a, b Rule) bool { return compareAnywhere(a, b) == 0 }) {
		demand := Demand{Rule: merged(same...)}
		demand.Namespace = ""
		for _, r := range same {
			demand.Namespaces = append(demand.Namespaces, r.Namespace)
		}
		out = append(out, demand)
	}
	return out
}
