// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	_ "embed"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// usualText has the roles and the bindings of a new cluster of Kubernetes v1.37. An object has a line: its kind, its namespace and its
// name, for a role the sums that it is in and that it is, for a binding the role and the subjects. Below a role is a line for
// each rule: the verbs, the groups, the resources, and names of objects. A rule of paths has a dash for the groups.
//
//go:embed roles.txt
var usualText string

// usualRole is a role or a binding that each cluster has.
type usualRole struct {
	resource string
	// typed is the object, and tree the same on the wire. Neither may be changed.
	typed any
	tree  *unstructured.Unstructured
}

// partOf is the label of a role that is part of a sum; the sum's name follows.
const partOf = "rbac.authorization.k8s.io/aggregate-to-"

// usualRoles reads them once in a process.
var usualRoles = sync.OnceValue(func() (out []usualRole) {
	var block []string
	for line := range strings.Lines(usualText) {
		if !strings.HasPrefix(line, " ") && len(block) > 0 {
			out = append(out, readRole(block))
			block = nil
		}
		block = append(block, line)
	}
	return append(out, readRole(block))
})

// readRole reads the lines of an object.
func readRole(block []string) usualRole {
	head := strings.Fields(block[0])
	kind, rest := head[0], head[2:]
	meta := metav1.ObjectMeta{
		Name:        head[1],
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
	}
	if namespace, name, found := strings.Cut(head[1], "/"); found {
		meta.Namespace, meta.Name = namespace, name
	}
	out := usualRole{resource: strings.ToLower(kind) + "s"}
	switch kind {
	case "ClusterRole":
		out.typed = readClusterRole(meta, rest, readRules(block[1:]))
	case "Role":
		out.typed = rbacv1.Role{ObjectMeta: meta, Rules: readRules(block[1:])}
	case "ClusterRoleBinding":
		out.typed = rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: readRef(rest[0]), Subjects: readSubjects(rest[1:])}
	case "RoleBinding":
		out.typed = rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: readRef(rest[0]), Subjects: readSubjects(rest[1:])}
	}
	out.tree = treeOf(out.typed)
	if out.tree.Object["rules"] == nil { // of a sum
		delete(out.tree.Object, "rules")
	}
	out.tree.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
	return out
}

// readClusterRole returns a cluster role, with the sums that it is in, and that it is.
func readClusterRole(meta metav1.ObjectMeta, sums []string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
	out := rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	for _, word := range sums {
		if name, found := strings.CutPrefix(word, "in:"); found {
			meta.Labels[partOf+name] = "true"
		} else if name, found := strings.CutPrefix(word, "sum:"); found {
			out.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{partOf + name: "true"}}}}
		}
	}
	return out
}

func readRules(lines []string) (out []rbacv1.PolicyRule) {
	list := func(text string) []string { return strings.Split(strings.ReplaceAll(text, `""`, ""), ",") }
	for _, line := range lines {
		c := strings.Fields(line)
		rule := rbacv1.PolicyRule{Verbs: list(c[0])}
		if c[1] == "-" {
			rule.NonResourceURLs = list(c[2])
		} else {
			rule.APIGroups, rule.Resources = list(c[1]), list(c[2])
		}
		if len(c) > 3 {
			rule.ResourceNames = list(c[3])
		}
		out = append(out, rule)
	}
	return out
}

func readRef(text string) rbacv1.RoleRef {
	kind, name, _ := strings.Cut(text, "/")
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func readSubjects(words []string) (out []rbacv1.Subject) {
	for _, word := range words {
		kind, name, _ := strings.Cut(word, "/")
		s := rbacv1.Subject{Kind: kind, Name: name, APIGroup: rbacv1.GroupName}
		if kind == rbacv1.ServiceAccountKind {
			s.APIGroup = ""
			s.Namespace, s.Name, _ = strings.Cut(name, "/")
		}
		out = append(out, s)
	}
	return out
}

// treeOf returns an object of RBAC as it is on the wire.
func treeOf(o any) *unstructured.Unstructured {
	var tree map[string]any
	var err error
	switch o := o.(type) {
	case rbacv1.ClusterRole:
		tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&o)
	case rbacv1.Role:
		tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&o)
	case rbacv1.ClusterRoleBinding:
		tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&o)
	case rbacv1.RoleBinding:
		tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&o)
	}
	if err != nil {
		panic("server: " + err.Error()) // not reached: these types can be converted
	}
	return &unstructured.Unstructured{Object: tree}
}

// fromTree reads an object of RBAC.
func fromTree(tree *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(tree.Object, into)
}
