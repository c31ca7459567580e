// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	spelling "github.com/handwerk-dev/handwerk/dsl/words"
)

// object reads the template of a child at a place. A missing template is reported elsewhere.
func (p *parser) object(c *child, at []string, config any) {
	if config == nil {
		return
	}
	c.source = config
	compiler := p.one
	if c.forEach != nil {
		compiler = p.each
	}
	c.template = p.tree(compiler.Generating(), config, at)
	if c.template == nil {
		c.template = &expr.Template{}
	}
	switch tree := config.(type) {
	case map[string]any:
		p.fields(c, at, tree)
	case string:
		if len(c.template.Programs()) != 1 {
			p.fault(at, "want an object (apiVersion, kind, metadata, …), or one expression that gives one")
		}
	default:
		p.fault(at, "want an object (apiVersion, kind, metadata, …), or one expression that gives one")
	}
	p.once(c)
}

// fields checks an object without evaluating expressions.
func (p *parser) fields(c *child, at []string, tree map[string]any) {
	if has(tree, "status") {
		p.fault(below(at, "status"), "belongs to whoever controls the child, and cannot be applied")
	}
	whole := p.required(at, tree, "apiVersion")
	whole = p.required(at, tree, "kind") && whole
	if metadata, isMap := tree["metadata"].(map[string]any); isMap {
		p.metadata(below(at, "metadata"), metadata)
	} else {
		p.required(at, tree, "metadata")
	}
	version, fixed := p.constant(tree["apiVersion"])
	kind, fixedToo := p.constant(tree["kind"])
	if !whole || !fixed || !fixedToo {
		return
	}
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		p.fault(below(at, "apiVersion"), "want a version, with its group before it unless that is the core group, as in apps/v1")
		return
	}
	c.kind = group.WithKind(kind)
}

func (p *parser) metadata(at []string, tree map[string]any) {
	if has(tree, "generateName") {
		p.fault(below(at, "generateName"), "a child is found again by its name, so it cannot be left to the server: give metadata.name, "+
			"as in ${self.metadata.name}-${key}")
		return
	}
	p.required(at, tree, "name")
}

// required checks that a text exists.
func (p *parser) required(at []string, tree map[string]any, key string) bool {
	given, found := tree[key]
	text, isText := given.(string)
	mistyped := nearly(tree, key)
	switch {
	case !found && mistyped != "":
		p.faults = append(p.faults, &shape.Misfit{
			Path: slices.Concat([]string{action}, below(at, mistyped)), Key: true, Message: fmt.Sprintf("unknown field (did you mean %q?)", key),
		})
	case !found:
		p.fault(at, "%s is required", key)
	case !isText || text == "":
		p.fault(below(at, key), "want text")
	default:
		return true
	}
	return false
}

// nearly returns a key that is similar to a missing one; empty if there is none.
func nearly(tree map[string]any, key string) string {
	for _, other := range slices.Sorted(maps.Keys(tree)) {
		known := slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "data", "status", "name", "namespace"}, other)
		if _, near := spelling.Nearest(other, []string{key}); near && !known {
			return other
		}
	}
	return ""
}

// place identifies an object. Two children cannot have the same place.
type place struct{ group, kind, namespace, name string }

// written returns the place of a child from its template, including expressions, if the template has all parts of
// it.
func (c *child) written() (place, bool) {
	tree, _ := c.source.(map[string]any)
	metadata, _ := tree["metadata"].(map[string]any)
	name, named := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if c.kind.Empty() || !named || c.forEach != nil {
		return place{}, false
	}
	meta := part(c.template, "metadata")
	if of := part(meta, "name"); of != nil {
		name = of.Written() // a let may be something else in another handler
	}
	if of := part(meta, "namespace"); of != nil {
		namespace = of.Written()
	}
	return place{c.kind.Group, c.kind.Kind, namespace, name}, true
}

// always identifies the object of a child; empty if it is computed, or if it is not always made.
func (p *plan) always(c *child) string {
	at, known := c.written()
	if !known || c.include != nil || p.include != nil || c.readsRenamed() {
		return ""
	}
	kind := schema.GroupKind{Group: at.group, Kind: at.kind}
	return kind.String() + " " + strings.TrimPrefix(at.namespace+"/"+at.name, "/")
}

// readsRenamed reports whether the child is of a part that is used with a name, and its template reads children: their names in
// the text are those in the part, so that equal texts may give other objects.
func (c *child) readsRenamed() bool {
	return c.own != c.name && slices.ContainsFunc(c.programs(), func(p *expr.Program) bool { return p.Uses(expr.Children) || p.Uses(expr.Current) })
}

// twice notes children with the same object. If both have includeWhen, they may be alternatives, and it notes
// nothing. It also notes one kind in two versions.
func (p *parser) twice(children map[string]*child) {
	var before []*child
	versions := map[schema.GroupKind]*child{}
	for _, c := range sorted(children) {
		p.versions(versions, c)
		mine, known := c.written()
		first := slices.IndexFunc(before, func(other *child) bool {
			theirs, _ := other.written()
			return theirs == mine && (c.include == nil || other.include == nil)
		})
		if known && first >= 0 {
			p.fault([]string{c.own}, "is the same object as %s: %s %s", before[first].name, mine.kind, mine.name)
		}
		if known {
			before = append(before, c)
		}
	}
}

// versions notes a child whose kind another child has in another version.
func (p *parser) versions(before map[schema.GroupKind]*child, c *child) {
	if c.kind.Empty() || c.spec.Ownership == dsl.Unowned {
		return // unowned children are not watched
	}
	if first := before[c.kind.GroupKind()]; first != nil && first.kind != c.kind {
		p.fault([]string{c.own}, "is of %s, but %s is of %s: children of one kind are watched in one version",
			c.kind.GroupVersion(), first.name, first.kind.GroupVersion())
	}
	before[c.kind.GroupKind()] = c
}
