// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// rights returns the roles and bindings as they are now. They are read again after a write to one of them.
func (s *Server) rights() *rbac.Policy {
	if s.policy == nil {
		next := map[*store.Row]any{}
		s.policy = &rbac.Policy{
			Roles:               decodedRoles[rbacv1.Role](s, "roles", s.roles, next),
			ClusterRoles:        decodedRoles[rbacv1.ClusterRole](s, "clusterroles", s.roles, next),
			RoleBindings:        decodedRoles[rbacv1.RoleBinding](s, "rolebindings", s.roles, next),
			ClusterRoleBindings: decodedRoles[rbacv1.ClusterRoleBinding](s, "clusterrolebindings", s.roles, next),
		}
		s.roles = next
	}
	return s.policy
}

// attributes are what is asked of a request. A Namespace is in the namespace of its name.
func (r Request) attributes() rbac.Attributes {
	out := rbac.Attributes{
		User: r.user, Verb: r.Verb, Namespace: r.Namespace, Group: r.Resource.Group, Resource: r.Resource.Resource,
		Subresource: r.Subresource, Name: r.Name,
	}
	if r.Resource.GroupResource() == namespaces() {
		out.Namespace = r.Name
	}
	if out.Name == "" { // a field selector can name one object
		selector, err := fields.ParseSelector(r.options.Get("fieldSelector"))
		if err == nil {
			out.Name, _ = selector.RequiresExactMatch("metadata.name")
		}
	}
	return out
}

// refusalOf is why a request is refused.
func refusalOf(a rbac.Attributes) string {
	if a.Path != "" {
		return fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path)
	}
	target := a.Resource
	if a.Subresource != "" {
		target += "/" + a.Subresource
	}
	out := fmt.Sprintf("User %q cannot %s resource %q in API group %q", a.User.Name, a.Verb, target, a.Group)
	if a.Namespace != "" {
		return out + fmt.Sprintf(" in the namespace %q", a.Namespace)
	}
	return out + " at the cluster scope"
}

// escalates returns why a user cannot write a role or a binding: it would grant rights that the user does not have.
func (s *Server) escalates(t *table, r Request, o *unstructured.Unstructured) error {
	if !s.authorizes || t.group != rbacv1.GroupName || r.user.Name == "" || slices.Contains(r.user.Groups, rbac.Masters) {
		return nil
	}
	ask := rbac.Attributes{User: r.user, Verb: "escalate", Group: t.group, Resource: t.plural, Namespace: o.GetNamespace(), Name: o.GetName()}
	var want []rbacv1.PolicyRule
	if strings.HasSuffix(t.plural, "bindings") {
		var binding rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		ask.Verb, ask.Resource, ask.Name = "bind", strings.ToLower(binding.RoleRef.Kind)+"s", binding.RoleRef.Name
		rules, found := s.rights().Of(binding.RoleRef, o.GetNamespace())
		if !found && !s.rights().Allows(ask) {
			return apierrors.NewNotFound(t.name(), binding.RoleRef.Name) // a real server names the binding's resource
		}
		want = rules
	} else {
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		want = role.Rules
	}
	if s.rights().Allows(ask) {
		return nil
	}
	missing := rbac.Missing(s.rights().RulesFor(r.user, o.GetNamespace()), want)
	if len(missing) == 0 {
		return nil
	}
	var lines []string
	for _, rule := range missing {
		lines = append(lines, rbac.Describe(rule))
	}
	slices.Sort(lines)
	return apierrors.NewForbidden(t.name(), o.GetName(), fmt.Errorf(
		"user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", r.user.Name, r.user.Groups, strings.Join(lines, "\n")))
}
