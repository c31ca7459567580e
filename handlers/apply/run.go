// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// pass is one run over the children of an object.
type pass struct {
	*plan
	r *dsl.Request
	// owned are the object's children. Nothing here changes the objects that they give.
	owned dsl.Children
	// sender applies the desired objects.
	sender sender
	// result has the failures and waits so far.
	result result
}

// run is the handler.
func (p *plan) run(ctx context.Context, r *dsl.Request) error {
	run := &pass{plan: p, r: r, owned: dsl.SharedChildren(r.Children)}
	run.sender = sender{run.owned, r.Log, r.Object.GetNamespace()}
	var taken places
	switch {
	case p.final:
		taken = run.keep(ctx)
		run.end(ctx, taken)
	case r.Cause == dsl.Delete:
		run.leave(ctx)
	default:
		taken = run.keep(ctx)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("applying children: %w", context.Cause(ctx))
	}
	return run.finish(len(taken))
}

// keep applies what is desired, and takes away the rest. It returns the desired objects.
func (p *pass) keep(ctx context.Context) places {
	d, err := p.desired()
	if err != nil {
		p.result.fail("reading children", err)
	}
	for _, level := range p.graph.Levels() {
		if ctx.Err() != nil {
			return d.taken
		}
		p.level(ctx, d, level)
	}
	p.settle(d)
	p.again(d.current.moved(p.plan, d.inputs.states))
	p.prune(ctx, d.taken)
	return d.taken
}

// desired returns the desired objects before any is computed. After an error, children that do not need the children
// of other handlers can be computed all the same.
func (p *pass) desired() (*desired, error) {
	var all []dsl.ChildObject
	var err error
	if slices.ContainsFunc(slices.Collect(maps.Values(p.children)), func(c *child) bool { return c.looks }) {
		all, err = p.owned.All() // reading all that there are takes time
	}
	now := p.current(all)
	others := slices.DeleteFunc(all, func(found dsl.ChildObject) bool { return found.Handler == p.id || p.graph.Has(found.Name) })
	sees := inputs{owner: now.within(&p.r.Subject), params: p.params, others: others, unknown: err, states: states{}}
	known, _ := p.owned.(dsl.ChildInputs)
	return &desired{plan: p.plan, owned: p.owned, current: now, inputs: sees, known: known, taken: places{}}, err
}

// level handles children that do not depend on each other.
func (p *pass) level(ctx context.Context, d *desired, names []string) {
	level := d.level(ctx, names)
	if ctx.Err() != nil {
		return // the desired objects are not all known
	}
	p.sender.enter(ctx, level)
	var ready []*object
	for _, st := range level {
		if st.child.rollout == nil {
			ready = append(ready, st.objects...)
		}
	}
	p.sender.send(ctx, ready)
	for _, together := range rollouts(level) {
		update{desired: d, sender: p.sender, states: together}.roll(ctx)
	}
	for _, st := range level {
		p.sender.compare(ctx, st.objects)
	}
	var again []*object
	for _, st := range level {
		again = append(again, d.late(ctx, st)...)
	}
	p.sender.send(ctx, again)
	for _, st := range level {
		st.note()
		st.awaitReady(d.inputs)
		p.result.add(st.result)
	}
}

// finish reports the result to people, and to the engine. Objects is the number of desired objects.
func (p *pass) finish(objects int) error {
	condition, err := p.result.summary(objects)
	if err == nil && p.r.Cause == dsl.Delete {
		return nil
	}
	p.report.set(&p.r.Subject, p.r.Patch, condition)
	if len(p.result.failures) > 0 {
		p.r.Events.Event(dsl.Warning, condition.Reason, "%s", condition.Message)
	}
	return err
}
