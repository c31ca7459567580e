// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks an operator against a cluster: once before it runs, with [Check], and again while it runs, whenever
// the cluster's schemas may have changed, with a [Recheck].
package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	poll "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/crd"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

const (
	// publishing is how long the schema of a CRD may take after the CRD is served.
	publishing = 3 * time.Second
	// lookAgain is the time between looks whether it is there.
	lookAgain = 200 * time.Millisecond
)

// Findings are what holding an operator against a cluster has brought to light.
type Findings struct {
	// Faults are what does not fit the schemas that the cluster has.
	Faults []error
	// Doubts are what may be right all the same.
	Doubts []error
	// Warnings name what could not be looked at, such as a resource whose CRD is not there.
	Warnings []string
}

// Check holds an operator against the cluster that config reaches: every resource, child and related
// resource is looked for, and every expression and template checked against the schemas that are
// served. The API server is asked, too, whether it would take the CRDs that the operator brings along,
// if that is allowed. It writes nothing. An error means that the cluster could not be asked.
func Check(ctx context.Context, op *dsl.Operator, config *rest.Config) (Findings, error) {
	config = transport.WithDeadline(config)
	config.QPS = -1
	c, err := catalog.Dial(ctx, config)
	if err != nil {
		return Findings{}, err
	}
	there, err := kindsOf(ctx, c, op)
	if err != nil {
		return Findings{}, err
	}
	out, found := Findings{}, newServed()
	for _, r := range op.Resources() {
		found.look(ctx, c, r)
	}
	for _, x := range op.Indexes() {
		found.find(ctx, c, x.Resource, schema.GroupVersionKind{})
	}
	if err := found.await(ctx, c.Schemas()); err != nil {
		return Findings{}, err
	}
	out.Warnings = append(out.Warnings, found.unpublished()...)
	for _, r := range op.Resources() {
		if err := out.try(ctx, op, config, r); err != nil {
			return Findings{}, err
		}
	}
	faults, doubts := op.CheckSchemas(op.Resources(), dsl.Knowledge{OfResource: found.ofResource, OfKind: found.ofKind, Kinds: there})
	out.Faults, out.Doubts = append(out.Faults, faults...), doubts
	for _, absent := range found.absent {
		if !there.reported(absent.name, absent.kind) && !brought(op, absent.name) {
			out.warn(absent.err)
		}
	}
	return out, nil
}

// brought is whether the configuration has the CRD of a resource, which says what the resource is before it is installed.
func brought(op *dsl.Operator, name dsl.ResourceName) bool {
	return slices.ContainsFunc(op.Resources(), func(r *dsl.Resource) bool { return r.CRD != nil && r.Name == name })
}

// look finds a resource with all that goes with it.
func (s *served) look(ctx context.Context, c *catalog.Catalog, r *dsl.Resource) {
	find := func(name dsl.ResourceName, kind schema.GroupVersionKind) { s.find(ctx, c, name, kind) }
	find(r.Name, schema.GroupVersionKind{})
	for name, kind := range r.Owned() {
		find(name, kind)
	}
	for _, child := range r.Makes {
		if !child.Kind.Empty() {
			find(dsl.ResourceName{}, child.Kind)
		}
	}
	for _, h := range r.Handlers() {
		for _, need := range h.Needs {
			if !need.Kind.Empty() && len(h.Known.Patches) > 0 {
				find(dsl.ResourceName{}, need.Kind)
			}
		}
	}
	for _, relation := range r.Relations() {
		find(relation.Resource, schema.GroupVersionKind{})
	}
}

// find finds a resource, or that of a kind where there is one.
func (s *served) find(ctx context.Context, c *catalog.Catalog, name dsl.ResourceName, kind schema.GroupVersionKind) {
	var resolved catalog.Resource
	var err error
	if kind.Empty() {
		resolved, err = c.Resolve(ctx, name)
	} else {
		resolved, err = c.KindOf(ctx, kind)
	}
	if err != nil {
		s.absent = append(s.absent, absent{name, kind, err})
		return
	}
	s.add(name, resolved)
}

// warn adds why something cannot be looked at.
func (f *Findings) warn(err error) {
	text := err.Error()
	if errors.Is(err, catalog.ErrMissing) {
		text += "; what is said of it was not checked (is its CRD installed?)"
	}
	if !slices.Contains(f.Warnings, text) {
		f.Warnings = append(f.Warnings, text)
	}
}

// try adds what the API server would refuse of a resource's CRD.
func (f *Findings) try(ctx context.Context, op *dsl.Operator, config *rest.Config, r *dsl.Resource) error {
	refused, err := crd.Try(ctx, op, config, r)
	if apierrors.IsForbidden(err) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the API server was not asked whether it takes the CRD of %s: that is a dry run, which needs the rights to create and patch CRDs: %v", r.Name, err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("trying CRD of %s: %w", r.Name, err)
	}
	for _, fault := range refused {
		if r.CRDFault != nil {
			fault = r.CRDFault(fault)
		}
		f.Faults = append(f.Faults, fault)
	}
	return nil
}

// served is what the API server serves of what an operator names, with its schemas.
type served struct {
	names   map[dsl.ResourceName]schema.GroupVersionKind
	kinds   []schema.GroupVersionKind
	schemas map[schema.GroupVersionKind]*spec.Schema
	// absent is what was looked for and is not there.
	absent []absent
}

// absent is a resource, or a kind where that is not empty, that was not found, and why.
type absent struct {
	name dsl.ResourceName
	kind schema.GroupVersionKind
	err  error
}

func newServed() *served { return &served{names: map[dsl.ResourceName]schema.GroupVersionKind{}} }

// add notes a resource that is served, and the name under which it was asked for.
func (s *served) add(name dsl.ResourceName, r catalog.Resource) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	s.names[name] = kind
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
}

// fill reads the schemas of all that was added.
func (s *served) fill(ctx context.Context, from *catalog.Schemas) (err error) {
	s.schemas, err = from.Of(ctx, s.kinds...)
	return err
}

// await is fill, with a little patience for schemas that are not published yet: that of a new CRD is
// a moment behind the CRD.
func (s *served) await(ctx context.Context, from *catalog.Schemas) error {
	err := poll.PollUntilContextTimeout(ctx, lookAgain, publishing, true, func(ctx context.Context) (bool, error) {
		err := s.fill(ctx, from)
		return len(s.unpublished()) == 0, err
	})
	if poll.Interrupted(err) && ctx.Err() == nil {
		return nil // the missing resource is reported
	}
	return err
}

// unpublished says for which kinds there is no schema.
func (s *served) unpublished() (out []string) {
	for _, kind := range s.kinds {
		if s.schemas[kind] == nil {
			out = append(out, fmt.Sprintf("the API server publishes no schema of kind %s of %s; what is said of it was not checked", kind.Kind, kind.GroupVersion()))
		}
	}
	return out
}

// ofResource returns the schema of a resource, by the name that the operator has for it.
func (s *served) ofResource(name dsl.ResourceName) *spec.Schema { return s.schemas[s.names[name]] }

// ofKind returns the schema of a kind.
func (s *served) ofKind(kind schema.GroupVersionKind) *spec.Schema { return s.schemas[kind] }
