// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// desired computes the desired objects from the templates, level by level.
type desired struct {
	*plan
	inputs inputs
	// owned are the object's children, and current is what they are before the reconcile.
	owned   dsl.Children
	current *current
	// known remembers what children were made from; nil if nothing does.
	known dsl.ChildInputs
	// taken has every desired object so far.
	taken places
	// rendered is the size of all rendered templates.
	rendered int
}

// level computes the objects of children that do not depend on each other.
func (d *desired) level(ctx context.Context, names []string) []*state {
	level := make([]*state, 0, len(names))
	for _, name := range names {
		st := d.want(ctx, d.children[name])
		d.inputs.states[name] = st
		level = append(level, st)
	}
	d.taken.add(level)
	return level
}

// want computes the objects of a child until the context ends: the cost of one expression is limited, but not that
// of all elements together.
func (d *desired) want(ctx context.Context, c *child) *state {
	st := &state{child: c}
	if d.inputs.states.blocked(c) || c.looks && d.inputs.unknown != nil {
		st.open = true // the error is reported elsewhere
		return st
	}
	scope := d.scope(c, nil)
	of := scope
	of.Params = d.includeParams
	if d.include != nil && !d.included(d.include, st, c.label(""), of) ||
		c.include != nil && !c.includesEach() && !d.included(c.include.program, st, c.label(""), scope) {
		st.excluded = !st.open
		return st
	}
	list, err := c.elements(func(vars map[string]any) expr.Scope { return d.scope(c, vars) })
	if err != nil {
		st.excluded = d.unresolved(st, c.label(""), err, c.forEach.Programs(), scope)
		return st
	}
	d.objects(ctx, st, list)
	st.excluded = c.forEach == nil && len(st.objects) == 0 && !st.open
	return st
}

// scope returns the scope of a child's expressions.
func (d *desired) scope(c *child, vars map[string]any) expr.Scope {
	scope := d.inputs.scope(vars)
	if dsl.MayBeSecret(c.kind) {
		return scope.OfSecret()
	}
	return scope
}

// objects computes the objects of a child, one for each element.
func (d *desired) objects(ctx context.Context, st *state, list []expr.Element) {
	before := d.rendered
	for _, e := range list {
		if ctx.Err() != nil {
			st.open = true
			return
		}
		d.object(ctx, st, e)
		if d.rendered > mostOfAll {
			st.tooLarge()
			d.rendered = before // others may still fit
			return
		}
	}
}

// mostOfAll limits the total size of the children of one handler in bytes, as [expr.Room] counts them. All children
// of a level are in memory at the same time, each several times on its way to the API server and back.
const mostOfAll = 16 << 20

// tooLarge fails a child that does not fit in addition to those before it. It applies none of the child's objects,
// because which of them fit would be arbitrary.
func (st *state) tooLarge() {
	st.open, st.objects = true, nil
	st.result.fail(st.child.label(""), dsl.Permanent(wrong(reasonTooLarge, "with it, the handler's children have more than %d MiB together", mostOfAll>>20)))
}

// includesEach reports whether includeWhen is evaluated for each item.
func (c *child) includesEach() bool {
	return c.forEach != nil && slices.ContainsFunc(expr.ItemVariables(), c.include.program.Uses)
}

// included evaluates includeWhen.
func (d *desired) included(include *expr.Program, st *state, label string, scope expr.Scope) bool {
	holds, err := include.Bool(scope)
	if err != nil {
		d.unresolved(st, label, fmt.Errorf("evaluating includeWhen: %w", err), []*expr.Program{include}, scope)
	}
	return holds && err == nil
}

// object computes one object of a child, unless includeWhen excludes it.
func (d *desired) object(ctx context.Context, st *state, e expr.Element) {
	c, secrets := st.child, d.inputs.owner.Secrets
	scope, label := d.scope(c, e.Vars), c.elementLabel(e, secrets)
	if c.include != nil && c.includesEach() && !d.included(c.include.program, st, label, scope) {
		return
	}
	o := &object{child: c, key: e.Key, vars: e.Vars, called: label, hidden: c.hides(secrets), inputs: d.inputsOf(st, e)}
	if live := d.settled(c, e.Key, o.inputs); live != nil {
		o.settled, o.size, o.place = live, live.Size, placeIn(live, d.inputs.owner.Object.GetNamespace())
	} else if !d.render(st, o, scope) || d.current.unsure(o) && !d.confirm(ctx, st, o, scope) {
		return
	}
	d.rendered += o.size
	st.objects = append(st.objects, o)
}

// render computes a desired object, and reports whether that succeeded.
func (d *desired) render(st *state, o *object, scope expr.Scope) bool {
	own := scope
	own.Room = expr.NewRoom(expr.MostOfAnObject)
	o.generated, own.Generated = false, func() { o.generated = true }
	value, err := o.child.template.Render(own)
	if err != nil {
		d.unresolved(st, o.called, err, o.child.template.Programs(), scope)
		return false
	}
	o.size = own.Room.Used()
	if err := o.fit(value, d.inputs.owner.Object.GetNamespace()); err != nil {
		st.open = true
		st.result.fail(o.called, err)
		return false
	}
	o.err = CheckData(o.child.template, o.desired, d.inputs.owner.Secrets)
	d.current.lock(o)
	return true
}

// late computes again the objects of a child that somebody has changed since their templates saw them, and returns those that
// are to be applied once more.
func (d *desired) late(ctx context.Context, st *state) (again []*object) {
	for _, o := range st.objects {
		if !o.child.recalls || !apierrors.IsConflict(o.err) {
			continue
		}
		if o.err = nil; d.confirm(ctx, st, o, d.scope(o.child, o.vars)) {
			again = append(again, o)
		}
	}
	return again
}

// confirm reads from the API server the object that a desired one would change, and computes that again if there is one:
// nothing that was made once is made again because a cache lags. It reports whether that succeeded.
func (d *desired) confirm(ctx context.Context, st *state, o *object, scope expr.Scope) bool {
	live, err := dsl.LiveChild(ctx, d.owned, o.desired, o.spec())
	if err != nil {
		st.open, o.err = true, err
		st.result.fail(o.called, o.said())
		return false
	}
	if live == nil {
		return true
	}
	d.current.put(o.child, o.key, live.Object)
	return d.render(st, o, scope)
}

// fit takes the result of a template as the desired object, and checks it. Own is the owner's namespace.
func (o *object) fit(value any, own string) error {
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
	o.place = placeOf(&unstructured.Unstructured{Object: tree})
	switch {
	case o.place.namespace == "":
		o.place.namespace = own
	case o.child.spec.ByReference() && o.child.spec.Ownership != dsl.Unowned && own != "" && own != o.place.namespace:
		return wrong(reasonInvalid, "an owned child is in its owner's namespace, %s, and not in %s: leave the namespace out, or give the child ownership: labelled", own, o.namespace())
	}
	return nil
}

// placeOf returns the place of an object.
func placeOf(u *unstructured.Unstructured) place {
	return place{schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind()).Group, u.GetKind(), u.GetNamespace(), u.GetName()}
}

// namespace returns the namespace in the template, for people.
func (o *object) namespace() string {
	if o.hidden {
		return dsl.Unshown
	}
	return o.place.namespace
}

// unresolved notes a failed evaluation. It reports whether the child is excluded because of it: the expression
// reads a child that is not desired.
func (d *desired) unresolved(st *state, label string, err error, programs []*expr.Program, scope expr.Scope) (leftOut bool) {
	if errors.Is(err, expr.ErrMissing) {
		from, cause := d.inputs.missing(programs, scope)
		switch {
		case d.inputs.states.excluded(from):
			return true
		case from != "":
			st.open = true
			if one := d.inputs.lacks(programs); one != "" {
				st.result.wait(0, "%s to exist (needed by %s)", one, label)
			} else {
				st.result.wait(0, "what %s takes from %s: %v", label, from, cause)
			}
			return false
		}
	}
	st.open = true
	st.result.fail(label, judged(err))
	return false
}

// judged adds a reason to an error of an evaluation, unless it has one.
func judged(err error) error {
	if _, is := errors.AsType[*verdict](err); is {
		return err
	}
	if errors.Is(err, expr.ErrTooLarge) {
		return wrong(reasonTooLarge, "%w", err)
	}
	return wrong(reasonUnresolved, "%w", err)
}
