// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
)

// checked has the warnings and notes of a check.
type checked struct {
	// warnings may be faults: with --strict they are.
	warnings source.Faults
	// notes are accepted by a flag, or nothing in a configuration can change them.
	notes source.Faults
}

// held checks an operator against a cluster, or without one against the built-in kinds. Faults are returned as the
// error.
func (p *program) held(ctx context.Context, f *validateFlags, op *dsl.Operator) (checked, error) {
	if f.cluster {
		return p.checkCluster(ctx, f, op)
	}
	faults, odd, err := config.Check(op)
	if err != nil {
		return checked{}, err
	}
	return checked{warnings: odd}, asError(faults)
}

// outdatedCRD is the advice for an expression that fits the CRD of the configuration, and not the older one of the cluster.
const outdatedCRD = " (the cluster's CRD is older than the configuration's: use operator run --install-crds, or operator crd | kubectl apply -f -)"

// checkCluster checks an operator against a cluster. Faults are returned as the error.
func (p *program) checkCluster(ctx context.Context, f *validateFlags, op *dsl.Operator) (out checked, err error) {
	rest, _, err := p.access(ctx, &f.kube)
	if err != nil {
		return out, err
	}
	rest.UserAgent = userAgent(op.Name)
	found, err := p.check(ctx, op, config.Own(op), rest)
	if err != nil {
		return out, fmt.Errorf("checking against the cluster: %w", err)
	}
	faults := config.Placed(found.Faults)
	out.warnings, out.notes = config.Placed(found.Doubts), config.Placed(found.Notes)
	for _, outdated := range config.Placed(found.Outdated) {
		outdated.Message += outdatedCRD
		out.warnings = append(out.warnings, outdated)
	}
	for _, unseen := range found.Warnings {
		out.warnings = append(out.warnings, source.Fault{Message: unseen})
	}
	for _, r := range op.Resources() {
		trial, err := p.try(ctx, op, rest, r)
		if err != nil {
			return out, fmt.Errorf("checking against the cluster: trying CRD of %s: %w", r.Name, err)
		}
		faults = append(faults, out.tried(f, r, trial)...)
	}
	return out, asError(faults.Sorted())
}

// tried adds what a cluster says of a resource's CRD, and returns the faults.
func (c *checked) tried(f *validateFlags, r *dsl.Resource, trial crd.Trial) source.Faults {
	for _, untried := range trial.Untried {
		c.warnings = append(c.warnings, source.Fault{Message: untried.Error()})
	}
	faults := trial.Rejected
	switch {
	case trial.Breaks == nil:
	case f.allowBreaking:
		c.notes = append(c.notes, ofCRD(r, []error{trial.Breaks})...)
	default:
		faults = append(faults, fmt.Errorf("%w: %s", trial.Breaks, trial.Breaks.Cure()))
	}
	return ofCRD(r, faults)
}

// ofCRD adds to faults of a resource's CRD its place.
func ofCRD(r *dsl.Resource, faults []error) source.Faults {
	if r.CRDFault != nil {
		faults = slices.Clone(faults)
		for i, fault := range faults {
			faults[i] = r.CRDFault(fault)
		}
	}
	return config.Placed(faults)
}

// asError returns faults as an error. Without faults it returns nil.
func asError(faults source.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	return faults
}
