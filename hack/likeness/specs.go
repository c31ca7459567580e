// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// specs runs controller-runtime's own integration specs, which expect a server without controllers, as envtest starts one. A spec
// that is not known to fail on a real server passes there.
func specs(ctx context.Context, s Servers) (Report, error) {
	tests, err := specTests(ctx)
	if err != nil {
		return Report{}, err
	}
	var packages []string
	for _, name := range specPackages() {
		if s.Selected(name) {
			packages = append(packages, name)
		}
	}
	sandboxes := func(ctx context.Context) (*Server, error) { return s.Sandbox(ctx, "--no-workloads") }
	found, err := s.specs(ctx, tests, packages, sandboxes)
	if err != nil {
		return Report{}, err
	}
	if s.Remeasure {
		if err := s.remeasureSpecs(ctx, tests, packages); err != nil {
			return Report{}, err
		}
	}
	real, err := s.readKnown("controller-runtime")
	if err != nil {
		return Report{}, err
	}
	out := Report{Title: "controller-runtime's specs (" + real.About + ")"}
	for _, spec := range found {
		passes, known := real.Passes[spec.id()]
		out.Cases = append(out.Cases, Case{
			Group: spec.Package, Name: spec.Name, Real: passes || !known, Sandbox: spec.why == "", Why: spec.why,
		})
	}
	return out, nil
}

// remeasureSpecs runs the specs on real servers without controllers, and keeps the names of those that fail.
func (s Servers) remeasureSpecs(ctx context.Context, tests specBinaries, packages []string) error {
	found, err := s.specs(ctx, tests, packages, func(ctx context.Context) (*Server, error) { return s.Real(ctx, "kcm,scheduler,kwok") })
	if err != nil {
		return err
	}
	out := known{
		About:  fmt.Sprintf("%s, on Kubernetes %s, real server measured on %s", controllerRuntime, kubernetesVersion, time.Now().Format(time.DateOnly)),
		Passes: map[string]bool{},
	}
	old, err := s.readKnown("controller-runtime")
	for _, spec := range found {
		if _, listed := old.Passes[spec.id()]; spec.why != "" || err == nil && listed {
			out.Passes[spec.id()] = spec.why == ""
		}
	}
	return s.writeKnown("controller-runtime", out)
}

// specs runs the specs of packages, each on a fresh server.
func (s Servers) specs(ctx context.Context, tests specBinaries, packages []string, start func(context.Context) (*Server, error)) (out []spec, err error) {
	for _, name := range packages {
		binary, err := tests.build(ctx, name)
		if err != nil {
			return nil, err
		}
		found, err := tests.run(ctx, s.Dir, name, binary, start)
		if err != nil {
			return nil, fmt.Errorf("running specs of %s: %w", name, err)
		}
		failed := 0
		for _, each := range found {
			if each.why != "" {
				failed++
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d pass, %d fail\n", name, len(found)-failed, failed)
		out = append(out, found...)
	}
	return out, nil
}

// spec is a spec that has run.
type spec struct {
	Package, Name string
	// why is the first line of its failure; empty if it has passed.
	why string
}

// id is the name of a spec in one word.
func (s spec) id() string {
	return strings.Join(append([]string{s.Package}, strings.Fields(s.Name)...), "_")
}
