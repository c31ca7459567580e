// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expiry"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// childVar is the variable for the child itself in expressions.
const childVar = "child"

// parser reads the action's configuration and collects its faults.
type parser struct {
	id string
	// final: the children are made when the object is deleted. Entries: the handler has forEach, and makes children
	// for each entry.
	final, entries bool
	// restores: the handler makes a missing child again.
	restores bool
	// The compilers of expressions: for one child, for each of several, and both with the variable child.
	one, each, oneLive, eachLive *expr.Compiler
	faults                       []error
	// branches observes the branches of expressions, for the coverage of tests. Nil means that they are not observed.
	branches expr.Branches
}

func newParser(compiler *expr.Compiler, b actions.Build) (*parser, error) {
	p := &parser{branches: b.Registry.Branches(b.Resource, b.ID), id: b.ID, final: b.AtDeletion, restores: b.Restores, entries: len(b.Vars) > 0}
	compiler, err := compiler.WithLets(b.Lets)
	if err != nil {
		return nil, err
	}
	compiler = compiler.Observed(p.branches)
	items := expr.ItemVariables()
	if p.entries {
		items = nil // an item has no items
	}
	for _, one := range []struct {
		of   **expr.Compiler
		vars []string
	}{
		{&p.one, append(slices.Clone(b.Vars), expr.Current)}, {&p.each, slices.Concat(b.Vars, items, []string{expr.Current})}, {&p.oneLive, append(slices.Clone(b.Vars), childVar)},
		{&p.eachLive, slices.Concat(b.Vars, items, []string{childVar})},
	} {
		var err error
		if *one.of, err = compiler.With(one.vars...); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// fault notes a fault at a place below the action.
func (p *parser) fault(at []string, format string, args ...any) {
	p.faults = append(p.faults, &shape.Misfit{
		Path: slices.Concat([]string{action}, at), Message: fmt.Sprintf(format, args...),
	})
}

// below returns the place of a key within another.
func below(at []string, keys ...string) []string { return slices.Concat(at, keys) }

// child compiles a child. It also returns a child with faults, so that others can refer to it. The decoder has
// reported faults of the form. Alone: the action has no other child.
func (p *parser) child(name, own string, config *childConfig, alone bool) *child {
	at := []string{own}
	c := &child{name: name, own: own, config: config.whole, entry: p.entries, spec: dsl.ChildSpec{Handler: p.id, Name: name}, limit: defaultLimit}
	if !dsl.IsIdentifier(own) || slices.Contains([]string{"true", "false", "null", "in"}, own) {
		p.fault(at, "%q is no name for a child: want letters, digits and _, as in children.db", own)
	}
	switch {
	case config.whole == nil:
		return c
	case config.itself():
		p.object(c, at, config.Template.value)
	default:
		p.several(c, at, config)
		p.ownership(c, at, config)
		p.predicates(c, at, config)
		p.object(c, below(at, templateKey), config.Template.value)
	}
	if p.final {
		p.last(c, at)
	}
	p.whole(c, at)
	p.expiring(c, alone)
	return c
}

// expiring notes a child that its TTL deletes and the handler would create again: because it restores missing children, or because
// it applies again while another child is refused or not ready. A computed TTL is checked when it is known.
func (p *parser) expiring(c *child, alone bool) {
	field := expiry.Field(c.kind.GroupKind())
	if field == nil || !p.restores && alone {
		return
	}
	ttl := c.template
	for _, key := range field {
		ttl = part(ttl, key)
	}
	switch {
	case ttl == nil || ttl.Plain == nil && len(ttl.Entries) == 0 && len(ttl.Programs()) == 0:
	case !p.restores:
		p.faults = append(p.faults, misfit(ttl, expiry.RunsBesideOthers))
	case len(ttl.Programs()) == 0:
		p.faults = append(p.faults, misfit(ttl, expiry.RunsAgain))
	}
}

// whole checks that it is known what a child was made from, where a change of it does not come at once and in place. Of a
// Secret the operator keeps no digest of the values.
func (p *parser) whole(c *child, at []string) {
	if c.kind != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}
	const why = "is not for Secrets: which values were applied is not kept, so a changed value cannot be told from one that somebody else has changed"
	switch {
	case c.spec.Update == dsl.UpdateRecreate || c.spec.Update == dsl.UpdateOnDelete:
		p.fault(below(at, "update"), why)
	case c.rollout != nil && c.rollout.partition != nil:
		p.fault(below(at, "rollout", "partition"), why)
	}
}

// last is for a child that is made when its owner is deleted. With an owner reference, the child would be
// garbage-collected with its owner, so a label ties it to the owner's uid. A child that an earlier owner of the
// same name has left is not mistaken for it.
func (p *parser) last(c *child, at []string) {
	switch c.spec.Ownership {
	case dsl.Owned:
		p.fault(below(at, "ownership"), "a child that is made when its owner is deleted cannot be owned: Kubernetes would delete it, too")
	case dsl.Unowned:
		p.fault(below(at, "ownership"), "a child that is made when its owner is deleted must say whose it is, or it would be taken for that of a later object of the name")
	case "":
		c.spec.Ownership = dsl.Labelled
	}
	if c.spec.DeleteOrder != "" {
		p.fault(below(at, "deleteOrder"), "a child that is made when its owner is deleted has no order in that deletion")
	}
	switch c.spec.OnDelete {
	case "":
		c.stays = true
	case dsl.DeleteChild:
		if c.ready == nil {
			p.fault(below(at, "onDelete"), "it would be deleted as soon as it is made: say with readyWhen what is to be waited for")
		}
	default:
		p.fault(below(at, "onDelete"), "a child that is made when its owner is deleted stays, unless this is %s", dsl.DeleteChild)
	}
}

func has(tree map[string]any, key string) bool {
	_, found := tree[key]
	return found
}

// tree compiles a tree of templates; nil if it has a fault.
func (p *parser) tree(c *expr.Compiler, tree any, at []string) *expr.Template {
	t, err := c.Template(tree, slices.Concat([]string{action}, at)...)
	if err != nil {
		p.faults = append(p.faults, err)
		return nil
	}
	return t
}

// constant returns a text without expressions.
func (p *parser) constant(config any) (string, bool) {
	text, isText := config.(string)
	if !isText {
		return "", false
	}
	t, err := p.each.Template(text)
	if err != nil || len(t.Programs()) > 0 {
		return "", false
	}
	plain, err := t.Render(expr.Scope{})
	out, isText := plain.(string)
	return out, err == nil && isText
}
