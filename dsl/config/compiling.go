// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strconv"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// compiling compiles the expressions of a resource, an index or an activity. It collects in out the checks that run
// when schemas are known.
type compiling struct {
	*part
	loader *loader
	out    *dsl.Resource
	// lets are the named expressions that expressions here can use; nil without any.
	lets *expr.Lets
}

// exists checks that a resource exists, when the kinds are known.
func (c *compiling) exists(at path, name dsl.ResourceName) {
	if name == (dsl.ResourceName{}) {
		return // it has a fault already
	}
	c.out.Exists = append(c.out.Exists, c.placed(at, at, func(s shape.Schemas) []error {
		_, err := s.Kinds.Resource(name.GVR(), true)
		return flatten(err)
	}))
}

// mayExist is exists for a resource in a right. The right may be for another cluster than the known one.
func (c *compiling) mayExist(at path, name dsl.ResourceName) {
	c.out.Exists = append(c.out.Exists, c.placed(at, at, func(s shape.Schemas) []error {
		_, err := s.Kinds.Resource(name.GVR(), false)
		if misfit, is := errors.AsType[*shape.Misfit](err); is {
			misfit.Warning = true
		}
		return flatten(err)
	}))
}

// known checks a field against the schema of the resource, when that is known.
func (c *compiling) known(at path, field dsl.Path) {
	if len(field) == 0 {
		return
	}
	c.check(at, at, func(s shape.Schemas) []error { return expr.Faults(nil, check.Path(s.Self.Schema, field...)) })
}

// check adds a check that runs when schemas are known. Its faults are placed as by [part.misfits].
func (c *compiling) check(at, whole path, find shape.Check) {
	c.out.Checks = append(c.out.Checks, c.placed(at, whole, find))
}

// placed adds places to the faults of a check.
func (p *part) placed(at, whole path, find shape.Check) shape.Check {
	return func(s shape.Schemas) (out []error) {
		for _, fault := range p.misfits(at, whole, find(s)...) {
			out = append(out, fault)
		}
		return out
	}
}

// unfit notes faults; see [part.misfits].
func (p *part) unfit(at, whole path, errs ...error) {
	p.found = append(p.found, p.misfits(at, whole, errs...)...)
}

// misfits adds places to errors: a [shape.Misfit] is placed below at, other errors at whole.
func (p *part) misfits(at, whole path, errs ...error) (out source.Faults) {
	for _, err := range flatten(errors.Join(errs...)) {
		place, line, column, node := whole, 0, 0, p.Nearest
		if faulty, ok := errors.AsType[*shape.Misfit](err); ok {
			place, line, column = p.step(at, faulty.Path), faulty.Line, faulty.Column
			if faulty.Key {
				node = p.KeyAt
			}
		}
		fault := p.source.Fault(node(place), place, line, column, err.Error())
		fault.Warning = shape.IsWarning(err)
		out = append(out, fault)
	}
	return usedAt(out, p.user)
}

// step follows the steps of a misfit. Steps that are numbers may be indexes of a list.
func (p *part) step(at path, steps []string) path {
	for _, step := range steps {
		if i, err := strconv.Atoi(step); err == nil && p.Has(at.Index(i)) {
			at = at.Index(i)
			continue
		}
		at = at.Key(step)
	}
	return at
}
