// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// The API server lets an account write a role only if the account holds all rights of the role, or may `escalate` it. It
// lets an account write a binding only if the account holds all rights of the bound role, or may `bind` that role.

// The kinds that grant rights. Those of bindings end in binding.
const (
	rbacGroup   = "rbac.authorization.k8s.io"
	role        = "Role"
	clusterRole = "ClusterRole"
	binding     = "Binding"
)

// grants returns the rights that the operator needs to write a child that grants rights.
func (c *child) grants() []dsl.Need {
	if c.kind.Group != rbacGroup {
		return nil
	}
	switch c.kind.Kind {
	case role, clusterRole:
		rules, why := c.rules()
		if why == "" {
			return rules
		}
		name, plain := literal(part(part(c.template, "metadata"), "name"))
		if !plain {
			return []dsl.Need{c.grant("escalate", c.kind.Kind, why+"; any role, as its metadata.name is an expression")}
		}
		return []dsl.Need{c.grant("escalate", c.kind.Kind, why, name)}
	case role + binding, clusterRole + binding:
		return c.bindings()
	}
	return nil
}

// bindings returns the rights to bind the role of a binding. If the role is another child whose name is an
// expression, the operator holds the role's rights instead: a right to bind it would be a right to bind all roles.
func (c *child) bindings() (out []dsl.Need) {
	ref := part(c.template, "roleRef")
	if ref == nil || len(ref.Pieces) == 0 && (part(ref, "kind") == nil || part(ref, "name") == nil) {
		return nil // the API server refuses it
	}
	name, plain := literal(part(ref, "name"))
	if c.bound != nil {
		if name, plain = literal(part(part(c.bound.template, "metadata"), "name")); !plain {
			return nil
		}
	}
	kinds := []string{role, clusterRole}
	if kind, is := literal(part(ref, "kind")); is {
		kinds = []string{kind}
	}
	for _, kind := range kinds {
		if plain {
			out = append(out, c.grant("bind", kind, "binds it", name))
		} else {
			out = append(out, c.grant("bind", kind, "binds any role, as its roleRef.name is an expression"))
		}
	}
	return out
}

// grant returns the need of a verb on roles of a kind.
func (c *child) grant(verb, kind, why string, names ...string) dsl.Need {
	return c.need(dsl.Need{
		Verbs: []string{verb}, Resource: dsl.ResourceName{Resource: strings.ToLower(kind) + "s", Group: rbacGroup}, Names: names, Why: why,
	})
}

// need limits a need to the child's namespace, if the template names it.
func (c *child) need(n dsl.Need) dsl.Need {
	n.For, n.Why = c.kind, "child "+c.name+" "+n.Why
	namespace, plain := literal(part(part(c.template, "metadata"), "namespace"))
	if plain && len(validation.IsDNS1123Label(namespace)) == 0 {
		n.Namespace = namespace
	}
	return n
}

// rules returns the rights of a role, which the operator must hold. If they are not all known, why says so.
func (c *child) rules() (out []dsl.Need, why string) {
	const unknown = "has rules that are expressions"
	list := part(c.template, "rules")
	switch {
	case part(c.template, "aggregationRule") != nil:
		return nil, "has the rules of other roles (aggregationRule)"
	case !plainKeys(c.template) || list != nil && len(list.Pieces) > 0:
		return nil, unknown
	case list == nil:
		return nil, ""
	}
	for i := range list.List {
		rule := &list.List[i]
		if part(rule, "nonResourceURLs") != nil {
			return nil, "has rules about paths (nonResourceURLs)"
		}
		rights, known := c.rule(rule)
		if !known {
			return nil, unknown
		}
		out = append(out, rights...)
	}
	return out, ""
}

// rule returns the rights of one rule of a role. Names that are expressions count as all names.
func (c *child) rule(t *expr.Template) (out []dsl.Need, known bool) {
	groups, first := literals(part(t, "apiGroups"))
	resources, second := literals(part(t, "resources"))
	verbs, third := literals(part(t, "verbs"))
	if !plainKeys(t) || !first || !second || !third {
		return nil, false
	}
	if len(verbs) == 0 {
		return nil, true // the API server refuses it
	}
	names, _ := literals(part(t, "resourceNames"))
	for _, group := range groups {
		for _, resource := range resources {
			resource, subresource, _ := strings.Cut(resource, "/")
			out = append(out, c.need(dsl.Need{
				Verbs: verbs, Resource: dsl.ResourceName{Resource: resource, Group: group}, Subresource: subresource, Names: names, Why: "grants it",
			}))
		}
	}
	return out, true
}

// bind finds for each binding the child that is its role, if the name of the role is an expression. A binding with
// the same expression as a role depends on the role, so that the role is applied first: the API server checks it.
func bind(children map[string]*child, edges map[string][]string) {
	for _, c := range sorted(children) {
		other := c.role(children)
		switch {
		case other == nil:
		case slices.Contains(c.needs, other.name):
			c.bound = other
		case !reaches(edges, other.name, c.name):
			c.bound, c.needs = other, append(c.needs, other.name)
			edges[c.name] = c.needs
		}
	}
}

// reaches reports whether a child depends on another, directly or indirectly.
func reaches(edges map[string][]string, from, to string) bool {
	return from == to || slices.ContainsFunc(edges[from], func(next string) bool { return reaches(edges, next, to) })
}

// role returns the child that is the role of a binding whose roleRef.name is an expression: it refers to the child, or
// it is the same as in the child's name. The child's name must be plain, or the operator must hold the role's rights.
// It returns nil if no child is known to be the role.
func (c *child) role(children map[string]*child) *child {
	ref := part(c.template, "roleRef")
	kind, _ := literal(part(ref, "kind"))
	name := part(ref, "name")
	if c.kind.Group != rbacGroup || !strings.HasSuffix(c.kind.Kind, binding) || name == nil || len(name.Pieces) == 0 {
		return nil
	}
	for _, other := range sorted(children) {
		if other.kind.Group != rbacGroup || other.kind.Kind != kind || !c.with(other) {
			continue
		}
		called := part(part(other.template, "metadata"), "name")
		_, plain := literal(called)
		_, why := other.rules()
		byName := other.forEach == nil && name.Plain == "${"+expr.Children+"."+other.own+".metadata.name}" // the text of a part has its own names
		if (plain || why == "") && (byName || same(called, name)) {
			return other
		}
	}
	return nil
}

// with reports whether a role exists wherever its binding does: in the same namespace, for the same elements and on
// the same condition.
func (c *child) with(role *child) bool {
	near := role.kind.Kind == clusterRole || same(part(part(role.template, "metadata"), "namespace"), part(part(c.template, "metadata"), "namespace"))
	wanted := role.include == nil || c.include != nil && c.include.program.Text() == role.include.program.Text()
	return near && wanted && (role.forEach == nil || same(role.forEach, c.forEach))
}

// same reports whether two parts of templates have the same text, or are both absent.
func same(a, b *expr.Template) bool {
	if a == nil || b == nil {
		return a == b
	}
	return len(a.Pieces) == len(b.Pieces) && reflect.DeepEqual(a.Plain, b.Plain)
}

// literal returns a text without expressions.
func literal(t *expr.Template) (string, bool) {
	if t == nil || len(t.Pieces) > 0 {
		return "", false
	}
	text, isText := t.Plain.(string)
	return text, isText
}

// literals returns a list of texts without expressions. An absent list is empty.
func literals(t *expr.Template) (out []string, known bool) {
	if t == nil {
		return nil, true
	}
	if len(t.Pieces) > 0 {
		return nil, false
	}
	for i := range t.List {
		text, is := literal(&t.List[i])
		if !is {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}

// plainKeys reports whether a part of a template is a map without expressions in its keys.
func plainKeys(t *expr.Template) bool {
	return len(t.Pieces) == 0 && !slices.ContainsFunc(t.Entries, func(e expr.Entry) bool { return len(e.Key.Pieces) > 0 })
}
