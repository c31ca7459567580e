// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// atOnce is the number of parallel requests in one pass.
const atOnce = 8

// pass is one run over the children of an object.
type pass struct {
	*plan
	r *dsl.Request
	// others are the children of other handlers; unknown is the error if they cannot be read. Children that do not
	// need them are handled all the same.
	others  []dsl.ChildObject
	unknown error
	states  map[string]*state
	// taken has every desired object.
	taken map[place]*object
	// rendered is the size of all rendered templates.
	rendered int
	failures []failure
	waits    []wait
}

// state is the state of a child of the configuration in this pass.
type state struct {
	objects []*object
	// excluded: it is not desired.
	excluded bool
	// open: it is not complete, so children that need it must wait.
	open bool
}

// object is one desired object.
type object struct {
	child *child
	key   string
	// called is its name for people, from the configuration; hidden: people must not see another name while it does
	// not exist.
	called  string
	hidden  bool
	vars    map[string]any
	desired map[string]any
	place   place
	// live is the object as applied, or as found; nil if it is not known.
	live *unstructured.Unstructured
	err  error
	// held: its update must wait for that of others.
	held bool
}

// spec says how the object is kept.
func (o *object) spec() dsl.ChildSpec {
	out := o.child.spec
	out.Key = o.key
	return out
}

// run is the handler.
func (p *plan) run(ctx context.Context, r *dsl.Request) error {
	run := &pass{plan: p, r: r, states: map[string]*state{}, taken: map[place]*object{}}
	switch {
	case p.final:
		run.keep(ctx)
		run.end(ctx)
	case r.Cause == dsl.Delete:
		run.leave(ctx)
	default:
		run.keep(ctx)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("applying children: %w", context.Cause(ctx))
	}
	return run.outcome()
}

// keep applies what is desired, and takes away the rest.
func (p *pass) keep(ctx context.Context) {
	p.look()
	for _, level := range p.graph.Levels() {
		if ctx.Err() != nil {
			return
		}
		p.level(ctx, level)
	}
	p.prune(ctx)
}

// look reads the children of other handlers.
func (p *pass) look() {
	all, err := p.r.Children.All()
	if err != nil {
		p.unknown = err
		p.fail("reading children", err)
	}
	for _, found := range all {
		if found.Handler != p.id && !p.graph.Has(found.Name) {
			p.others = append(p.others, found)
		}
	}
}

// level handles children that do not depend on each other.
func (p *pass) level(ctx context.Context, names []string) {
	for _, name := range names {
		p.states[name] = p.want(ctx, p.children[name])
	}
	if ctx.Err() != nil {
		return // the desired objects are not all known
	}
	p.apart(names)
	p.enter(ctx, names)
	var ready []*object
	for _, name := range names {
		if p.children[name].rollout == nil {
			ready = append(ready, p.states[name].objects...)
		}
	}
	p.send(ctx, ready)
	for _, name := range names {
		if p.children[name].rollout != nil {
			p.roll(ctx, p.children[name], p.states[name])
		}
	}
	for _, name := range names {
		p.note(p.states[name])
		p.awaitReady(p.children[name], p.states[name])
	}
}

// enter enters the children of a level that must be in the owner's record, with one request. Apply reports errors.
// In the record of a namespaced owner, children with owner references are not needed.
func (p *pass) enter(ctx context.Context, names []string) {
	var all []dsl.DesiredChild
	for _, name := range names {
		for _, o := range p.states[name].objects {
			if o.err == nil && (o.child.spec.ByLabel() || p.r.Object.GetNamespace() == "") {
				all = append(all, dsl.DesiredChild{ChildSpec: o.spec(), Object: o.desired})
			}
		}
	}
	if len(all) == 0 {
		return
	}
	if err := p.r.Children.Enter(ctx, all...); err != nil {
		p.r.Log.V(1).Info("children are entered one by one", "reason", err.Error())
	}
}

// send applies objects, several in parallel.
func (p *pass) send(ctx context.Context, objects []*object) {
	each(ctx, objects, func(o *object) {
		if o.err != nil {
			return
		}
		result, err := p.r.Children.Apply(ctx, o.desired, o.spec())
		if o.err = err; result != nil {
			o.live = result // it may be one that is being deleted
		}
	})
}

// each calls fn for each element, several in parallel, until the context ends. It passes a panic on to the caller,
// because in another goroutine it would end the process.
func each[T any](ctx context.Context, list []T, fn func(T)) {
	slots := make(chan struct{}, atOnce)
	panics := make(chan any, len(list))
	var group sync.WaitGroup
	for _, element := range list {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
				<-slots
			}()
			fn(element)
		})
	}
	group.Wait()
	if len(panics) > 0 {
		panic(<-panics)
	}
}

// note notes which of a child's objects are not as desired.
func (p *pass) note(st *state) {
	for _, o := range st.objects {
		switch {
		case o.err != nil:
			p.fail(o.label(), o.said())
		case o.ending():
			p.wait(0, "%s to be gone, so that it can be made again", o.label())
		default:
			continue
		}
		st.open = true
	}
}

// said returns the object's error for people.
func (o *object) said() error {
	if o.hidden {
		return hidden(o.err)
	}
	return o.err
}

// ending reports whether the object is being deleted.
func (o *object) ending() bool { return o.live != nil && o.live.GetDeletionTimestamp() != nil }

// awaitReady checks readyWhen of each object.
func (p *pass) awaitReady(c *child, st *state) {
	if c.ready == nil {
		return
	}
	for _, o := range st.objects {
		if o.err != nil || o.held || o.ending() {
			continue
		}
		ready, err := p.holds(c.ready, o)
		switch {
		case err != nil:
			p.fail(o.label(), wrong(reasonUnresolved, "evaluating readyWhen: %w", err))
		case !ready:
			p.wait(0, "%s to be ready", o.label())
		}
		st.open = st.open || err != nil || !ready
	}
}

// holds evaluates a predicate on an existing object. If a value is missing, or the object is being deleted, it does
// not hold yet.
func (p *pass) holds(c *condition, o *object) (bool, error) {
	if o.live == nil || o.ending() {
		return false, nil
	}
	vars := map[string]any{childVar: o.live.Object}
	maps.Copy(vars, o.vars)
	holds, err := c.program.Bool(p.scope(vars))
	if errors.Is(err, expr.ErrMissing) {
		return false, nil
	}
	return holds, err
}

// scope returns the scope of expressions. Of the handler's own children, they see those of this pass, so children
// that are not desired are missing.
func (p *pass) scope(vars map[string]any) expr.Scope {
	own := p.r.Subject
	own.Children = seen{own.Children, p}
	return expr.Scope{Subject: &own, Params: p.params, Vars: vars}
}

// seen are the children as expressions see them.
type seen struct {
	dsl.ChildReader
	pass *pass
}

// All returns the children of other handlers, and this handler's children in this pass.
func (s seen) All() ([]dsl.ChildObject, error) {
	out := slices.Clone(s.pass.others)
	for _, name := range s.pass.graph.Names() {
		st := s.pass.states[name]
		if st == nil {
			continue
		}
		for _, o := range st.objects {
			if o.live != nil {
				out = append(out, dsl.ChildObject{ChildSpec: o.spec(), Object: o.live})
			}
		}
	}
	return out, nil
}
