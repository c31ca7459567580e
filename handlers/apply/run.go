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

// atOnce is how many requests of one pass are under way at a time.
const atOnce = 8

// pass is one run over the children of an object.
type pass struct {
	*plan
	r *dsl.Request
	// others are the children that other handlers made; unknown is why they cannot be told. What
	// needs none of them goes on then.
	others  []dsl.ChildObject
	unknown error
	states  map[string]*state
	// taken has every object that is wanted.
	taken map[place]*object
	// rendered is how many bytes the templates of the children have given.
	rendered int
	failures []failure
	waits    []wait
}

// state is what became of a child of the configuration in this pass.
type state struct {
	objects []*object
	// excluded: it is not wanted.
	excluded bool
	// open: it is not all there, so what needs it has to wait.
	open bool
}

// object is one object that is wanted.
type object struct {
	child *child
	key   string
	// called is what people call it by the configuration; hidden: they are to call it by nothing else while it is not there.
	called  string
	hidden  bool
	vars    map[string]any
	desired map[string]any
	place   place
	// live is what is there: as it was applied, or as it was found. Nil when it is not known.
	live *unstructured.Unstructured
	err  error
	// held: its update has to wait for that of others.
	held bool
}

// spec is how the object is kept.
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

// keep brings about what is wanted, and takes away what is not.
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

// look finds the children of other handlers.
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

// level handles children that do not need each other.
func (p *pass) level(ctx context.Context, names []string) {
	for _, name := range names {
		p.states[name] = p.want(ctx, p.children[name])
	}
	if ctx.Err() != nil {
		return // not all that is wanted is known
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

// enter enters those of a level that have to be in the owner's record, all with one request. What is
// wrong with one Apply says. An owner in a namespace lists no child by reference.
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

// send applies objects, several at a time.
func (p *pass) send(ctx context.Context, objects []*object) {
	each(ctx, objects, func(o *object) {
		if o.err != nil {
			return
		}
		result, err := p.r.Children.Apply(ctx, o.desired, o.spec())
		if o.err = err; result != nil {
			o.live = result // also one that is being deleted
		}
	})
}

// each calls fn for each element, several at a time, until the context ends. A panic is the caller's:
// in a goroutine of its own it would be the end of the process.
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

// note notes which of a child's objects are not there as they should be.
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

// said is the object's error as it is told.
func (o *object) said() error {
	if o.hidden {
		return hidden(o.err)
	}
	return o.err
}

// ending reports whether the object is being deleted.
func (o *object) ending() bool { return o.live != nil && o.live.GetDeletionTimestamp() != nil }

// awaitReady asks each object whether it is ready, where the child says what that is.
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

// holds evaluates a predicate about an object that is there. What comes upon something missing does
// not hold yet, nor does anything about an object that is being deleted.
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

// scope is what expressions see. Of the handler's own children that is what this pass has made of
// them, so one that is not wanted is not there.
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

// All returns the children of other handlers, and this handler's as they are in this pass.
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
