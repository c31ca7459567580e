// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The groups that have a meaning of their own.
const (
	// Masters may do everything, whatever the roles say.
	Masters = "system:masters"
	// Authenticated are all users with a name.
	Authenticated = "system:authenticated"
	// Unauthenticated are those without.
	Unauthenticated = "system:unauthenticated"
	// serviceAccounts are all ServiceAccounts; with a colon and a namespace those of the namespace.
	serviceAccounts = "system:serviceaccounts"
)

// User is the sender of a request.
type User struct {
	// Name is empty for a server without users.
	Name   string
	UID    string
	Groups []string
	// Extra is what else is known of the user, by keys such as example.com/team.
	Extra map[string][]string
}

// ServiceAccount returns the user that a ServiceAccount is.
func ServiceAccount(namespace, name, uid string) User {
	return User{
		Name: serviceAccountName(namespace, name), UID: uid,
		Groups: []string{serviceAccounts, serviceAccounts + ":" + namespace, Authenticated},
	}
}

func serviceAccountName(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// Attributes are what is asked of a request.
type Attributes struct {
	User User
	// Verb is a verb of RBAC, or an HTTP method in small letters for a path.
	Verb string
	// Namespace is empty at the scope of the cluster.
	Namespace                          string
	Group, Resource, Subresource, Name string
	// Path is that of a request for no resource; empty otherwise.
	Path string
}

// Policy has the roles and bindings of a cluster, by their names.
type Policy struct {
	Roles               []rbacv1.Role
	ClusterRoles        []rbacv1.ClusterRole
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// Allows reports whether a request is allowed.
func (p *Policy) Allows(a Attributes) bool { return p.Decide(a).Allowed }

// RulesFor returns the rules of a user in a namespace; an empty namespace means the cluster's scope.
func (p *Policy) RulesFor(u User, namespace string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for g := range p.grants(u, namespace) {
		out = append(out, g.rules...)
	}
	return out
}

// Of returns the rules of a role, and whether it exists; a Role is one of the namespace.
func (p *Policy) Of(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, found bool) {
	if ref.Kind == "Role" {
		for _, r := range p.Roles {
			if r.Namespace == namespace && r.Name == ref.Name {
				return r.Rules, true
			}
		}
		return nil, false
	}
	for _, r := range p.ClusterRoles {
		if r.Name == ref.Name {
			return p.aggregated(r, map[string]bool{}), true
		}
	}
	return nil, false
}

// aggregated returns the rules of a role with those that it aggregates. A role that has been seen adds nothing.
func (p *Policy) aggregated(r rbacv1.ClusterRole, seen map[string]bool) []rbacv1.PolicyRule {
	if seen[r.Name] {
		return nil
	}
	seen[r.Name] = true
	if r.AggregationRule == nil {
		return r.Rules
	}
	out := slices.Clone(r.Rules)
	for _, other := range p.ClusterRoles {
		if slices.ContainsFunc(r.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool { return selects(s, other.Labels) }) {
			out = append(out, p.aggregated(other, seen)...)
		}
	}
	return out
}

// Sum returns the rules of the roles that a role aggregates, as they are in the roles, each once and by the names of the roles.
func (p *Policy) Sum(r rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, each := range r.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&each)
		if err != nil {
			continue // it selects nothing
		}
		for _, other := range p.ClusterRoles {
			if other.Name == r.Name || !selector.Matches(labels.Set(other.Labels)) {
				continue
			}
			for _, rule := range other.Rules {
				if !slices.ContainsFunc(out, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(known, rule) }) {
					out = append(out, rule)
				}
			}
		}
	}
	return out
}

func selects(s metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && selector.Matches(labels.Set(set))
}

// is reports whether a subject of a binding is the user.
func is(u User, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == u.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && u.Name == serviceAccountName(namespace, s.Name)
	}
	return false
}

// matches reports whether a rule allows a request.
func matches(r rbacv1.PolicyRule, a Attributes) bool {
	if !has(r.Verbs, a.Verb) {
		return false
	}
	if a.Path != "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool { return covers(pattern, a.Path) })
	}
	return has(r.APIGroups, a.Group) && hasResource(r.Resources, a.Resource, a.Subresource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}

func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// hasResource reports whether a rule has a resource or its subresource, also by "*" and "*/scale".
func hasResource(list []string, resource, subresource string) bool {
	if subresource == "" {
		return has(list, resource)
	}
	return has(list, resource+"/"+subresource) || slices.Contains(list, "*/"+subresource)
}

// covers reports whether a pattern of paths, which may end with a star, has a path.
func covers(pattern, path string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == path || open && strings.HasPrefix(path, prefix)
}
