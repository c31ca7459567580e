// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// held checks an operator against a cluster, or without one against the built-in kinds. Faults are returned as the
// error.
func (p *program) held(ctx context.Context, f *validateFlags, op *dsl.Operator) (warnings source.Faults, err error) {
	if f.cluster {
		return p.checkCluster(ctx, f, op)
	}
	faults, odd, err := config.Check(op)
	if err != nil {
		return nil, err
	}
	return odd, asError(faults)
}

// checkCluster checks an operator against a cluster. Faults are returned as the error.
func (p *program) checkCluster(ctx context.Context, f *validateFlags, op *dsl.Operator) (warnings source.Faults, err error) {
	rest, _, err := p.access(ctx, &f.kube)
	if err != nil {
		return nil, err
	}
	rest.UserAgent = userAgent(op.Name)
	found, err := p.check(ctx, op, rest)
	if err != nil {
		return nil, fmt.Errorf("checking against the cluster: %w", err)
	}
	warnings = config.Placed(found.Doubts)
	for _, unseen := range found.Warnings {
		warnings = append(warnings, source.Fault{Message: unseen})
	}
	return warnings, asError(config.Placed(found.Faults).Sorted())
}

// asError returns faults as an error. Without faults it returns nil.
func asError(faults source.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	return faults
}
