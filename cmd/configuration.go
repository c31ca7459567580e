// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// operator reads the configuration, adds what main declares in Go, lets override change it and
// checks the whole.
func (p *program) operator(paths []string, override func(*dsl.Operator)) (*dsl.Operator, error) {
	op := &dsl.Operator{}
	if len(paths) > 0 {
		var err error
		if op, err = p.load(paths, p.registry, p.extra...); err != nil {
			return nil, err
		}
	} else {
		for _, add := range p.extra {
			add(op)
		}
	}
	override(op)
	if err := op.Validate(); err != nil {
		return nil, err
	}
	return op, nil
}

// needConfig asks for --config where nothing else says what the operator is.
func (p *program) needConfig(paths []string) error {
	if len(paths) == 0 && len(p.extra) == 0 {
		return errors.New("--config is required")
	}
	return nil
}

// faults returns what is wrong, one by one: the faults of a configuration, several errors that
// were joined, or the one that there is.
func faults(err error) source.Faults {
	if list, ok := errors.AsType[source.Faults](err); ok {
		return list
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return source.Faults{{Message: err.Error()}}
	}
	var list source.Faults
	for _, cause := range joined.Unwrap() {
		list = append(list, faults(cause)...)
	}
	return list
}
