// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// roleName says what is wrong with the name of a role or a binding.
func roleName(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// checkRules checks the rules of a role. Those of one in a namespace are about resources.
func checkRules(f *findings, rules []rbacv1.PolicyRule, namespaced bool) {
	for i, r := range rules {
		at := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			f.last = append(f.last, field.Required(at.Child("verbs"), ""))
		}
		if len(r.NonResourceURLs) > 0 {
			if namespaced {
				f.invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs")
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				f.invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs")
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			f.required(at.Child("apiGroups"), "resource rules must supply at least one api group")
		}
		if len(r.Resources) == 0 {
			f.required(at.Child("resources"), "resource rules must supply at least one resource")
		}
	}
}

// fillBinding sets the API groups of a binding.
func fillBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	orElse(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			orElse(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// checkBinding checks a binding. One without a namespace binds only ClusterRoles.
func checkBinding(f *findings, role rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) {
	at := field.NewPath("roleRef")
	supported(f, at.Child("apiGroup"), role.APIGroup, rbacv1.GroupName)
	if namespaced {
		supported(f, at.Child("kind"), role.Kind, "Role", "ClusterRole")
	} else {
		supported(f, at.Child("kind"), role.Kind, "ClusterRole")
	}
	if role.Name != "" {
		f.each(at.Child("name"), role.Name, roleName(role.Name, false))
	}
	for i, s := range subjects {
		checkSubject(f, field.NewPath("subjects").Index(i), s, namespaced)
	}
	f.declared(at.Child("name"), role.Name)
}

func checkSubject(f *findings, at *field.Path, s rbacv1.Subject, namespaced bool) {
	f.declared(at.Child("name"), s.Name)
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			f.each(at.Child("name"), s.Name, validation.ValidateServiceAccountName(s.Name, false))
		}
		if s.APIGroup != "" {
			supported(f, at.Child("apiGroup"), s.APIGroup, "")
		}
		if !namespaced {
			f.filled(at.Child("namespace"), s.Namespace)
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		supported(f, at.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)
	default:
		supported(f, at.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
	}
}

func checkRoleBinding(f *findings, next, old *rbacv1.RoleBinding) {
	checkBinding(f, next.RoleRef, next.Subjects, true)
	if old != nil {
		f.fixed(field.NewPath("roleRef"), next.RoleRef, old.RoleRef)
	}
}

func checkClusterRoleBinding(f *findings, next, old *rbacv1.ClusterRoleBinding) {
	checkBinding(f, next.RoleRef, next.Subjects, false)
	if old != nil {
		f.fixed(field.NewPath("roleRef"), next.RoleRef, old.RoleRef)
	}
}
