// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// wrongName says why an object of a built-in kind cannot have a name, whatever the values of its expressions. For
// other kinds, their API server decides.
func wrongName(kind shape.Kind, name *expr.Template) []error {
	text, known := likely(name)
	if !kind.Own || !known {
		return nil
	}
	faults := namesOf(kind)(text)
	if len(faults) == 0 {
		return nil
	}
	return []error{misfit(name, fmt.Sprintf("is no name of a %s: %s", kind.Kind, brief(faults[0])))}
}

// namesOf returns the function that validates names of a kind.
func namesOf(kind shape.Kind) func(string) []string {
	switch kind.Kind {
	case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "IPAddress":
		return content.IsPathSegmentName
	case "Service", "Namespace":
		return validation.IsDNS1123Label
	}
	return validation.IsDNS1123Subdomain
}

// oneForEach reports that all elements have the same object, although there may be several elements.
func (c *child) oneForEach(name, namespace *expr.Template) []error {
	same := func(variables ...string) bool {
		return !slices.ContainsFunc([]*expr.Template{name, namespace, part(c.template, "kind")}, func(t *expr.Template) bool {
			return t != nil && slices.ContainsFunc(variables, t.Uses)
		})
	}
	switch items := expr.ItemVariables(); {
	case c.entry && same(append(items, expr.Children)...): // the children of an entry are its own
		return []error{misfit(name, "is the same for every item of the handler's forEach, so that all would be one object: want item, index or key in it")}
	case c.entry, c.forEach == nil, c.limit == 1, !same(items...), atMostOne(c.forEach):
		return nil
	}
	return []error{misfit(name, "is the same for every item of forEach, so that all would be one object: want item, index or key in it "+
		"(or limit: 1, where there is one item at most)")}
}

// oneForOwners reports that a child that outlives its owner has the same name for all of them. The deletion of the next owner would
// wait until somebody deletes the child of this one. A name with an expression that is the same for all is meant so.
func (c *child) oneForOwners(name, namespace *expr.Template) []error {
	if !c.stays || len(name.Pieces) > 0 || namespace != nil && len(namespace.Pieces) > 0 {
		return nil
	}
	return []error{misfit(name, "is the same for every owner, and the child outlives its owner, so that the deletion of the next one would wait for it: "+
		"want ${self.metadata.uid} or ${self.metadata.name} in it")}
}

// atMostOne reports whether there is clearly at most one element: in a list, or in each outcome of ?:.
func atMostOne(forEach *expr.Template) bool {
	if list, isList := forEach.Plain.([]any); isList {
		return len(list) <= 1
	}
	if tree, isMap := forEach.Plain.(map[string]any); isMap {
		return len(tree) <= 1
	}
	return len(forEach.Pieces) == 1 && check.AtMostOne(forEach.Pieces[0].Program)
}

// misplaced says why a child cannot be in the namespace of its template, or not for every owner.
func (c *child) misplaced(owner, kind shape.Kind, metadata, namespace *expr.Template) []error {
	switch byReference := c.spec.ByReference(); {
	case !kind.Namespaced && owner.Namespaced && byReference:
		return []error{misfit(metadata, fmt.Sprintf("a %s is in no namespace and its owner, a %s, is in one, so it cannot be owned: want ownership: labelled",
			kind.Kind, owner.Kind))}
	case kind.Namespaced && !owner.Namespaced && namespace == nil:
		return []error{misfit(metadata, fmt.Sprintf("a %s is in a namespace and its owner, a %s, is in none: want metadata.namespace", kind.Kind, owner.Kind))}
	case !kind.Namespaced || !owner.Namespaced || !byReference || namespace == nil || len(namespace.Pieces) > 0:
		return nil
	}
	return []error{doubt(namespace, fmt.Sprintf("an owned child is in the namespace of its owner: a %s outside of %v has no such child "+
		"(want no namespace here, or ownership: labelled)", owner.Kind, namespace.Plain))}
}
