// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Decision is what the roles say of a request.
type Decision struct {
	// Allowed: the user may send it.
	Allowed bool
	// Reason is which binding allows it, or which roles of bindings do not exist, in the words of the API server; empty
	// if there is nothing to say.
	Reason string
}

// Decide decides on a request.
func (p *Policy) Decide(a Attributes) Decision {
	if slices.Contains(a.User.Groups, Masters) {
		return Decision{Allowed: true}
	}
	var missing []string
	for g := range p.grants(a.User, a.Namespace) {
		if slices.ContainsFunc(g.rules, func(r rbacv1.PolicyRule) bool { return matches(r, a) }) {
			return Decision{Allowed: true, Reason: "RBAC: allowed by " + g.source()}
		}
		if text := fmt.Sprintf("%s.%s %q not found", strings.ToLower(g.role.Kind), rbacv1.GroupName, g.role.Name); !g.found && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	switch len(missing) {
	case 0:
		return Decision{}
	case 1:
		return Decision{Reason: "rbac: RBAC: " + missing[0]}
	}
	return Decision{Reason: "rbac: RBAC: [" + strings.Join(missing, ", ") + "]"}
}

// grant is what a binding gives a user.
type grant struct {
	kind, name, namespace string // of the binding
	role                  rbacv1.RoleRef
	subject               rbacv1.Subject
	rules                 []rbacv1.PolicyRule
	// found: the role exists.
	found bool
}

// grants returns the bindings of a user in a namespace; an empty namespace means the cluster's scope.
func (p *Policy) grants(u User, namespace string) iter.Seq[grant] {
	return func(yield func(grant) bool) {
		give := func(g grant, subjects []rbacv1.Subject) bool {
			i := slices.IndexFunc(subjects, func(s rbacv1.Subject) bool { return is(u, s, g.namespace) })
			if i < 0 {
				return true
			}
			g.subject = subjects[i]
			g.rules, g.found = p.Of(g.role, g.namespace)
			return yield(g)
		}
		for _, b := range p.ClusterRoleBindings {
			if !give(grant{kind: "ClusterRoleBinding", name: b.Name, role: b.RoleRef}, b.Subjects) {
				return
			}
		}
		for _, b := range p.RoleBindings {
			in := namespace != "" && b.Namespace == namespace
			if in && !give(grant{kind: "RoleBinding", name: b.Name, namespace: namespace, role: b.RoleRef}, b.Subjects) {
				return
			}
		}
	}
}

// source is the binding in the words of the API server.
func (g grant) source() string {
	name, subject := g.name, g.subject.Name
	if g.namespace != "" {
		name += "/" + g.namespace
	}
	if g.subject.Kind == rbacv1.ServiceAccountKind && g.subject.Namespace != "" {
		subject += "/" + g.subject.Namespace
	} else if g.subject.Kind == rbacv1.ServiceAccountKind {
		subject += "/" + g.namespace
	}
	return fmt.Sprintf("%s %q of %s %q to %s %q", g.kind, name, g.role.Kind, g.role.Name, g.subject.Kind, subject)
}
