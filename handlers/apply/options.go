// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// defaultLimit is the default of limit: the greatest number of children of one name.
const defaultLimit = 1000

// several compiles forEach and its options.
func (p *parser) several(c *child, at []string, config *childConfig) {
	if config.mistypedEach {
		c.forEach = &expr.Template{}
		return
	}
	if !config.has("forEach") {
		for _, option := range []string{"key", "limit", "rollout"} {
			if config.has(option) {
				p.fault(below(at, option), "is for children with forEach")
			}
		}
		return
	}
	elements, place := config.ForEach.Value, below(at, "forEach")
	if p.entries {
		p.fault(place, "the handler has forEach, and item would be two things: make the children of one entry one by one")
	}
	if _, constant := p.constant(elements); constant {
		p.fault(place, form.WantItems)
	}
	if elements != nil {
		c.forEach = p.tree(p.one, elements, place)
	}
	if c.forEach == nil {
		c.forEach = &expr.Template{} // so that its other faults are reported, too
	}
	p.keyOf(c, below(at, "key"), string(config.Key))
	if config.Limit > 0 {
		c.limit = config.Limit
	}
	if config.Rollout != nil {
		c.rollout = p.rollout(c, at, config)
		if config.Update == dsl.UpdateOnDelete {
			p.fault(below(at, "rollout"), "is not for update: %s: children are updated when somebody deletes them", config.Update)
		}
	}
}

func (p *parser) keyOf(c *child, at []string, text string) {
	if text == "" {
		return
	}
	if _, constant := p.constant(text); constant {
		p.fault(at, "is the same for every item: want an expression as in ${item.name}")
	}
	c.key = p.tree(p.each, text, at)
}

// ownership sets how a child is tied to its owner.
func (p *parser) ownership(c *child, at []string, config *childConfig) {
	c.spec.Ownership, c.spec.Adopt, c.spec.OnDelete = config.Ownership, config.Adopt, config.OnDelete
	c.spec.DeleteOrder, c.spec.Drift = config.DeleteOrder, config.Drift
	c.spec.Update, c.spec.OnImmutable = cmp.Or(config.Update, c.spec.Update), config.OnImmutable
	c.spec.Allow = slices.DeleteFunc(config.Allow, func(name string) bool { return name == "" }) // that is a fault already
	if err := c.spec.Validate(); err != nil {
		option, _, _ := strings.Cut(err.Error(), " ")
		p.fault(below(at, option), "%v", err)
	}
}

// rollout says how children of one name are updated.
type rollout struct {
	// maxUnavailable gives the share that may be unready at a time; given is its configuration.
	maxUnavailable *expr.Template
	given          any
	ready          *condition
	// group is the name of the rollouts that are one with it; empty for none.
	group string
	// partition gives how many children, the last ones, are not updated; nil means none.
	partition *expr.Template
}

// kept returns how many children of all are not updated.
func (r *rollout) kept(scope expr.Scope, of int) (int, error) {
	if r.partition == nil {
		return 0, nil
	}
	value, err := r.partition.Render(scope)
	if err != nil {
		return 0, fmt.Errorf("evaluating rollout.partition: %w", err)
	}
	most, is := value.(int64)
	if !is || most < 0 {
		return 0, fmt.Errorf("evaluating rollout.partition: want a whole number of at least 0, and it is %s", typeOf(value))
	}
	return int(min(most, int64(of))), nil
}

// unready returns the share of the children that may be unready at a time.
func (r *rollout) unready(scope expr.Scope) (share, error) {
	value, err := r.maxUnavailable.Render(scope)
	if err != nil {
		return share{}, fmt.Errorf("evaluating rollout.maxUnavailable: %w", err)
	}
	out, valid := shareOf(value)
	if !valid {
		return share{}, fmt.Errorf("evaluating rollout.maxUnavailable: "+wantShare+", and it is %s", typeOf(value))
	}
	return out, nil
}

// programs returns the expressions that say how far a rollout goes.
func (r *rollout) programs() []*expr.Program {
	out := r.maxUnavailable.Programs()
	if r.partition != nil {
		out = slices.Concat(out, r.partition.Programs())
	}
	return out
}

// rollout reads the rollout of a child. Its readyWhen defaults to that of the child.
func (p *parser) rollout(c *child, at []string, config *childConfig) *rollout {
	ready, from := config.Rollout.ReadyWhen, below(at, "rollout", "readyWhen")
	if ready == "" && config.ReadyWhen != "" {
		ready, from = config.ReadyWhen, below(at, "readyWhen")
	}
	limit := config.Rollout.MaxUnavailable.value
	out := &rollout{maxUnavailable: p.tree(p.one, limit, below(at, "rollout", "maxUnavailable")), given: limit, group: config.Rollout.Group, ready: p.predicate(p.eachLive, from, cmp.Or(string(ready), "ready(child)"))}
	if partition := config.Rollout.Partition.value; partition != nil {
		out.partition = p.tree(p.one, partition, below(at, "rollout", "partition"))
		c.spec.Update = cmp.Or(c.spec.Update, dsl.UpdateInPlace) // given, so that each child says what it was made from
	}
	return out
}

// predicates compiles includeWhen and readyWhen.
func (p *parser) predicates(c *child, at []string, config *childConfig) {
	wanted, made := p.one, p.oneLive
	if c.forEach != nil {
		wanted, made = p.each, p.eachLive
	}
	if config.IncludeWhen != "" {
		if c.include = p.predicate(wanted, below(at, "includeWhen"), string(config.IncludeWhen)); c.include != nil {
			c.include.program = c.include.program.Observed("includeWhen", p.branches)
		}
	}
	if config.ReadyWhen != "" {
		c.ready = p.predicate(made, below(at, "readyWhen"), string(config.ReadyWhen))
	}
}

// include checks the handler's includeWhen, which may use only children of other handlers.
func (p *parser) include(program *expr.Program, children map[string]*child) *expr.Program {
	names, whole := program.Children()
	for _, c := range sorted(children) {
		c.looks = c.looks || len(names) > 0
		if whole || slices.Contains(names, c.name) {
			p.fault(nil, "the handler's includeWhen looks at children.%s, which the handler makes itself: give the children that depend on it an includeWhen of their own", c.name)
			break
		}
	}
	return program.Observed("includeWhen", p.branches)
}

// condition is a predicate with its place.
type condition struct {
	program *expr.Program
	at      []string
}

// predicate compiles a predicate; nil if it has a fault.
func (p *parser) predicate(c *expr.Compiler, at []string, text string) *condition {
	at = slices.Concat([]string{action}, at)
	program, err := c.Predicate(text)
	if err != nil {
		p.faults = append(p.faults, expr.Faults(at, err)...)
		return nil
	}
	return &condition{program, at}
}
