// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// operator reads the configuration, adds main's declarations in Go, applies override, and checks the operator.
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

// usage returns a PreRunE that refuses wrong flags: a missing --config when the operator is not declared in Go, and
// the faults that the checks find. The error is one of usage, so the exit code says that nothing was done.
func (p *program) usage(config *[]string, checks ...func() error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		if len(*config) == 0 && len(p.extra) == 0 {
			return &usageError{command: c.CommandPath(), err: errors.New("--config is required")}
		}
		for _, check := range checks {
			if err := check(); err != nil {
				return &usageError{command: c.CommandPath(), err: err}
			}
		}
		return nil
	}
}

// faults returns faults one by one: those of a configuration, joined errors, or a single error.
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
