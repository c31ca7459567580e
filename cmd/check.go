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

// held holds an operator against a cluster, or without one against Kubernetes' own kinds. Faults come as the error.
func (p *program) held(ctx context.Context, f *validateFlags, op *dsl.Operator) (warnings []string, err error) {
	if f.cluster {
		return p.checkCluster(ctx, f, op)
	}
	faults, odd, err := config.Check(op)
	if err != nil {
		return nil, err
	}
	return told(odd), asError(faults)
}

// checkCluster holds an operator against a cluster. Faults come as the error.
func (p *program) checkCluster(ctx context.Context, f *validateFlags, op *dsl.Operator) (warnings []string, err error) {
	rest, _, err := p.access(ctx, &f.kube)
	if err != nil {
		return nil, err
	}
	rest.UserAgent = userAgent(op.Name)
	found, err := p.check(ctx, op, rest)
	if err != nil {
		return nil, fmt.Errorf("checking against the cluster: %w", err)
	}
	return append(told(config.Placed(found.Doubts).Sorted()), found.Warnings...), asError(config.Placed(found.Faults).Sorted())
}

// told are warnings as they are told.
func told(of source.Faults) (out []string) {
	for _, one := range of {
		out = append(out, one.Error())
	}
	return out
}

// asError returns faults as an error, nil where there are none.
func asError(faults source.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	return faults
}
