// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// want computes the objects of a child until the context ends: the cost of one expression is limited, but not that
// of all elements together.
func (p *pass) want(ctx context.Context, c *child) *state {
	st := &state{}
	blocked := slices.ContainsFunc(c.needs, func(name string) bool { return p.states[name].open })
	if blocked || c.looks && p.unknown != nil {
		st.open = true // the error is reported elsewhere
		return st
	}
	scope := p.scope(nil)
	of := scope
	of.Params = p.includeParams
	if p.include != nil && !p.included(p.include, st, c.label(""), of) ||
		c.include != nil && !c.includesEach() && !p.included(c.include.program, st, c.label(""), scope) {
		st.excluded = !st.open
		return st
	}
	list, err := p.elements(c)
	if err != nil {
		st.excluded = p.unresolved(st, c.label(""), err, c.forEach.Programs(), scope)
		return st
	}
	p.objects(ctx, c, st, list)
	st.excluded = c.forEach == nil && len(st.objects) == 0 && !st.open
	return st
}

// objects computes the objects of a child, one for each element.
func (p *pass) objects(ctx context.Context, c *child, st *state, list []expr.Element) {
	before := p.rendered
	for _, e := range list {
		if ctx.Err() != nil {
			st.open = true
			return
		}
		p.object(c, st, e)
		if p.rendered > mostOfAll {
			p.tooLarge(c, st)
			p.rendered = before // others may still fit
			return
		}
	}
}

// mostOfAll limits the total size of the children of one handler in bytes, as [expr.Room] counts them. All children
// of a level are in memory at the same time, each several times on its way to the API server and back.
const mostOfAll = 16 << 20

// tooLarge fails a child that does not fit beside those before it. It applies none of the child's objects, because
// which of them fit would be arbitrary.
func (p *pass) tooLarge(c *child, st *state) {
	st.open, st.objects = true, nil
	p.fail(c.label(""), dsl.Permanent(wrong(reasonTooLarge, "with it, the handler's children have more than %d MiB together", mostOfAll>>20)))
}

// includesEach reports whether includeWhen is evaluated for each item.
func (c *child) includesEach() bool {
	return c.forEach != nil && slices.ContainsFunc(expr.ItemVariables(), c.include.program.Uses)
}

// included evaluates includeWhen.
func (p *pass) included(include *expr.Program, st *state, label string, scope expr.Scope) bool {
	holds, err := include.Bool(scope)
	if err != nil {
		p.unresolved(st, label, fmt.Errorf("evaluating includeWhen: %w", err), []*expr.Program{include}, scope)
	}
	return holds && err == nil
}

// object computes one object of a child, unless includeWhen excludes it.
func (p *pass) object(c *child, st *state, e expr.Element) {
	scope, label := p.scope(e.Vars), p.label(c, e)
	if c.include != nil && c.includesEach() && !p.included(c.include.program, st, label, scope) {
		return
	}
	own := scope
	own.Room = expr.NewRoom(expr.MostOfAnObject)
	value, err := c.template.Render(own)
	if err != nil {
		p.unresolved(st, label, err, c.template.Programs(), scope)
		return
	}
	p.rendered += own.Room.Used()
	o := &object{child: c, key: e.Key, vars: e.Vars, called: label, hidden: p.hides(c)}
	if err := p.fit(o, value); err != nil {
		st.open = true
		p.fail(label, err)
		return
	}
	st.objects = append(st.objects, o)
}

// fit checks the result of a template.
func (p *pass) fit(o *object, value any) error {
	tree, isMap := value.(map[string]any)
	if !isMap {
		return wrong(reasonInvalid, "the template has to give an object, and gives %s", typeOf(value))
	}
	o.desired = tree
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		text, found, err := unstructured.NestedString(tree, path...)
		if err != nil || !found || text == "" {
			return wrong(reasonInvalid, "%s is missing or no text: give it a value", strings.Join(path, "."))
		}
	}
	u := unstructured.Unstructured{Object: tree}
	group := schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind()).Group
	own := p.r.Object.GetNamespace()
	o.place = place{group, u.GetKind(), u.GetNamespace(), u.GetName()}
	switch {
	case o.place.namespace == "":
		o.place.namespace = own
	case o.child.spec.ByReference() && o.child.spec.Ownership != dsl.Unowned && own != "" && own != o.place.namespace:
		return wrong(reasonInvalid, "an owned child is in its owner's namespace, %s, and not in %s: leave the namespace out, or give the child ownership: labelled", own, p.namespaceOf(o))
	}
	return nil
}

// namespaceOf returns the namespace in the template, for people.
func (p *pass) namespaceOf(o *object) string {
	if o.hidden {
		return dsl.Unshown
	}
	return o.place.namespace
}

// unresolved notes a failed evaluation. It reports whether the child is excluded because of it: the expression
// reads a child that is not desired.
func (p *pass) unresolved(st *state, label string, err error, programs []*expr.Program, scope expr.Scope) (leftOut bool) {
	if errors.Is(err, expr.ErrMissing) {
		from, cause := p.missing(programs, scope)
		switch excluded := p.states[from] != nil && p.states[from].excluded; {
		case excluded:
			return true
		case from != "":
			st.open = true
			if one := p.lacks(programs); one != "" {
				p.wait(0, "%s (%s takes from it)", one, label)
			} else {
				p.wait(0, "what %s takes from %s: %v", label, from, cause)
			}
			return false
		}
	}
	st.open = true
	if _, judged := errors.AsType[*verdict](err); !judged {
		reason := reasonUnresolved
		if errors.Is(err, expr.ErrTooLarge) {
			reason = reasonTooLarge
		}
		err = wrong(reason, "%w", err)
	}
	p.fail(label, err)
	return false
}

// missing finds the expression that misses a value, and where it looked: a child's name, the related objects or an
// index; empty for other places. It names a child that is not desired only if nothing else is missing: a child that
// reads it is then taken away.
func (p *pass) missing(programs []*expr.Program, scope expr.Scope) (from string, cause error) {
	for _, program := range programs {
		_, err := program.Eval(scope)
		if !errors.Is(err, expr.ErrMissing) {
			continue
		}
		names, _ := program.Children()
		excluded, others := p.parted(names)
		if len(excluded) > 0 {
			filled := scope
			filled.Anything = excluded
			_, elsewhere := program.Eval(filled)
			if !errors.Is(elsewhere, expr.ErrMissing) {
				return excluded[0], err
			}
			err = elsewhere
		}
		switch {
		case len(others) > 0:
			return others[0], err
		case program.Uses(expr.Related):
			return "related objects", err
		case program.Uses(expr.Indexes):
			return "an index", err
		}
		return "", err
	}
	return "", nil
}

// parted splits names of children into those that are not desired, and the others.
func (p *pass) parted(names []string) (excluded, others []string) {
	for _, name := range names {
		if st := p.states[name]; st != nil && st.excluded {
			excluded = append(excluded, name)
		} else {
			others = append(others, name)
		}
	}
	return excluded, others
}

// apart fails the objects of a level that are the same as another one, or as one of an earlier level.
func (p *pass) apart(names []string) {
	here := map[place][]*object{}
	for _, name := range names {
		for _, o := range p.states[name].objects {
			here[o.place] = append(here[o.place], o)
		}
	}
	for at, objects := range here {
		rivals := objects
		if earlier := p.taken[at]; earlier != nil {
			rivals = append([]*object{earlier}, objects...)
		} else {
			p.taken[at] = objects[0]
		}
		if len(rivals) == 1 {
			continue
		}
		var labels []string
		for _, o := range rivals {
			labels = append(labels, o.called)
		}
		for _, o := range objects {
			o.err = wrong(reasonNameCollision, "%s come out as the same object: give each a name of its own", strings.Join(labels, " and "))
		}
	}
}

// label names a child of the configuration, or one of several, for people.
func (c *child) label(key string) string {
	if key == "" {
		return "child " + c.name
	}
	return fmt.Sprintf("child %s[%q]", c.name, key)
}

// label names the object.
func (o *object) label() string {
	if o.live != nil {
		return labelOf(o.live)
	}
	if o.hidden {
		return o.called
	}
	return words(o.place.kind, o.place.namespace, o.place.name)
}

func labelOf(u *unstructured.Unstructured) string {
	return words(u.GetKind(), u.GetNamespace(), u.GetName())
}

func words(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// lacks names the missing related object that expressions read; empty for none.
func (p *pass) lacks(programs []*expr.Program) string {
	if p.r.Related == nil {
		return ""
	}
	for _, relation := range p.r.Related.Relations() {
		uses := func(program *expr.Program) bool {
			names, _ := program.Related()
			return slices.Contains(names, relation.Name)
		}
		if !slices.ContainsFunc(programs, uses) {
			continue
		}
		if absent := p.r.Related.Absent(relation.Name); absent != "" {
			return absent
		}
	}
	return ""
}
