// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// current has the handler's children as they are before the handler applies them. Nil has none, and is for handlers
// that do not read them.
type current struct {
	// value is the variable: by name, an object, or for a child with forEach a map of objects by key. A child that is
	// not there is an empty map.
	value map[string]any
	// found are the objects by name and key, as the caches have them.
	found map[string]map[string]map[string]any
	// seen are the objects that expressions see, by place.
	seen map[place]*unstructured.Unstructured
}

// current returns the children before this reconcile. All are those of the owner.
func (p *plan) current(all []dsl.ChildObject) *current {
	if len(p.recalled) == 0 {
		return nil
	}
	out := &current{value: map[string]any{}, found: map[string]map[string]map[string]any{}, seen: map[place]*unstructured.Unstructured{}}
	for name := range p.children {
		out.value[name], out.found[name] = map[string]any{}, map[string]map[string]any{}
	}
	leaving := map[string]bool{}
	for _, one := range all {
		c := p.children[one.Name]
		if c == nil || (one.Key != "") != (c.forEach != nil) {
			continue
		}
		which, ends := one.Name+"/"+one.Key, one.Object.GetDeletionTimestamp() != nil
		if _, twice := out.found[one.Name][one.Key]; twice && (ends || !leaving[which]) {
			continue // a child that has got another name is there twice for a while
		}
		leaving[which] = ends
		out.found[one.Name][one.Key] = one.Object.Object
		out.put(c, one.Key, one.Object.Object)
	}
	return out
}

// put sets an object that is there.
func (n *current) put(c *child, key string, object map[string]any) {
	u := &unstructured.Unstructured{Object: object}
	n.seen[placeOf(u)] = u
	if c.forEach == nil {
		n.value[c.name] = object
		return
	}
	n.value[c.name].(map[string]any)[key] = object
}

// within returns the subject of expressions that know the variable.
func (n *current) within(s *dsl.Subject) *dsl.Subject {
	if n == nil {
		return s
	}
	out := *s
	out.Vars = maps.Clone(s.Vars)
	if out.Vars == nil {
		out.Vars = map[string]any{}
	}
	out.Vars[expr.Current] = n.value
	return &out
}

// recalling is within for a subject whose children were not read yet.
func (p *plan) recalling(s *dsl.Subject) (*dsl.Subject, error) {
	if len(p.recalled) == 0 || s.Children == nil {
		return s, nil
	}
	all, err := dsl.SharedReader(s.Children).All()
	if err != nil {
		return nil, fmt.Errorf("reading children: %w", err)
	}
	return p.current(all).within(s), nil
}

// lock has a desired object count only for the version of the object that its template has seen: a value that was taken from there
// does not overwrite what somebody has set since.
func (n *current) lock(o *object) {
	if n == nil || !o.child.recalls {
		return
	}
	anywhere := o.place
	anywhere.namespace = "" // as that of a child without one
	if was := cmp.Or(n.seen[o.place], n.seen[anywhere]); was != nil {
		(&unstructured.Unstructured{Object: o.desired}).SetResourceVersion(was.GetResourceVersion())
	}
}

// unsure reports whether the API server may have an object that decides what the template gives, and that the caches
// do not show: when the template looks for its own object and finds none, and when it makes a value for one.
func (n *current) unsure(o *object) bool {
	if n == nil || !o.child.recalls {
		return false
	}
	_, there := n.found[o.child.name][o.key]
	return !there || o.generated
}

// moved reports whether the reconcile has changed what expressions read of children before it.
func (n *current) moved(p *plan, made states) bool {
	if n == nil {
		return false
	}
	for name, fields := range p.recalled {
		if made[name] == nil {
			continue
		}
		for _, o := range made[name].objects {
			if o.live != nil && altered(n.found[name][o.key], o.live.Object, fields) {
				return true
			}
		}
	}
	return false
}

// turns count by handler how often in a row an apply has changed what it had read of its children.
type turns map[string]int

// After so many turns, more than the engine lets pass without a warning, an apply waits before the next one. From then on
// package breaker does not count it, because it follows the clock.
const (
	mostTurns = 11
	turnWait  = time.Minute
)

// again runs the handler once more if it has changed what its expressions have read of the children before it. What
// never comes to rest is slowed down.
func (p *pass) again(moved bool) {
	if p.r.Memo == nil || !moved && p.r.Cause != dsl.Again {
		return
	}
	known, handler := dsl.MemoOf[turns](p.r.Memo), p.id+" "+p.r.Handler
	if *known == nil {
		*known = turns{}
	}
	if p.r.Cause != dsl.Again || !moved {
		delete(*known, handler)
	}
	if !moved {
		return
	}
	if (*known)[handler]++; (*known)[handler] > mostTurns {
		p.r.RunAgain(turnWait)
		return
	}
	p.r.RunAgain(0)
}

// altered reports whether objects differ in one of the fields. An empty path is the whole object.
func altered(before, after map[string]any, fields []dsl.Path) bool {
	return slices.ContainsFunc(fields, func(field dsl.Path) bool {
		if len(field) == 0 {
			field = dsl.Path{"metadata", "resourceVersion"}
		}
		was, _, _ := unstructured.NestedFieldNoCopy(before, field...)
		is, _, _ := unstructured.NestedFieldNoCopy(after, field...)
		return !reflect.DeepEqual(was, is)
	})
}

// recall finds the fields that expressions read of the children before the handler, by the children's names.
func (p *plan) recall() {
	p.recalled = map[string][]dsl.Path{}
	for _, c := range p.children {
		for _, program := range c.programs() {
			for _, field := range p.recalls(program) {
				p.recalled[field[0]] = append(p.recalled[field[0]], field[1:])
			}
		}
	}
}

// recalls returns the fields that an expression reads of children before the handler. Each path begins with the name of the
// child, and has no key.
func (p *plan) recalls(program *expr.Program) (out []dsl.Path) {
	for _, path := range program.CurrentFields() {
		if len(path) == 0 || p.children[path[0]] == nil {
			continue // it is reported as a fault
		}
		name, rest := path[:1:1], path[1:]
		switch several := p.children[path[0]].forEach != nil; {
		case several && len(rest) > 0:
			rest = rest[1:]
		case len(rest) > 0 && rest[0] == expr.AnyKey:
			rest = nil
		}
		out = append(out, append(name, rest...))
	}
	return out
}

// remember notes which children look at children before the handler, and faults in it.
func (p *parser) remember(children map[string]*child) {
	for _, c := range sorted(children) {
		for _, program := range c.programs() {
			names, whole := program.Current()
			if whole {
				p.fault(c.holds(program), "name the child that is meant, as in current.db: it must be known what is read")
			}
			c.looks = c.looks || len(names) > 0
			c.recalls = c.recalls || slices.Contains(names, c.name)
			for _, name := range names {
				if of := children[name]; of != nil && of.spec.Ownership == dsl.Unowned {
					p.fault(c.holds(program), "current has no child with ownership: none, as %s: it is applied and forgotten", name)
				}
			}
		}
	}
}

// once checks that each value that the template generates is found again.
func (p *parser) once(c *child) {
	p.faults = append(p.faults, c.template.Once(expr.Stored{
		Variable: expr.Current, Way: []string{c.name}, Keyed: c.forEach != nil,
		Secret: c.kind.GroupKind() == schema.GroupKind{Kind: "Secret"},
		Names:  [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}},
	})...)
	for option, recreates := range map[string]bool{"onImmutable": c.spec.OnImmutable == dsl.RecreateChild, "update": c.spec.Update == dsl.UpdateRecreate} {
		if recreates && c.template.Generates() {
			p.fault([]string{c.own, option}, "generate() would make another value when the child is recreated: keep the value in a child of its own, or leave this out")
		}
	}
}

// shapes returns the shapes of the children before the handler.
func (p *plan) shapes(s shape.Schemas) map[string]shape.Shape {
	out := map[string]shape.Shape{}
	for name, c := range p.children {
		of := s.Children[name]
		of.List = c.forEach != nil
		out[name] = of
	}
	return out
}
