// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks an operator against a cluster: once before it runs, with [Check], and again while it runs, whenever
// the cluster's schemas may have changed, with a [Recheck].
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	poll "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

const (
	// publishing is how long the schema of a CRD may take after the CRD is served.
	publishing = 3 * time.Second
	// lookAgain is the time between looks whether it is there.
	lookAgain = 200 * time.Millisecond
)

// Findings are what holding an operator against a cluster has brought to light.
type Findings struct {
	// Faults are what does not fit the schemas.
	Faults []error
	// Outdated are what fits the CRDs of the configuration, and not those that the cluster has.
	Outdated []error
	// Doubts are what may be right all the same.
	Doubts []error
	// Notes are what the operator cannot do in this cluster, whatever its configuration says.
	Notes []error
	// Warnings name what could not be looked at, such as a resource whose CRD is not there.
	Warnings []string
}

// Check holds an operator against the cluster that config reaches: every resource, child and related
// resource is looked for, and every expression and template checked against the schemas that are
// served. Own has the schemas of the CRDs that the operator brings along: of their kinds, these count. It writes nothing. An error
// means that the cluster could not be asked.
func Check(ctx context.Context, op *dsl.Operator, own dsl.Knowledge, config *rest.Config) (Findings, error) {
	config = transport.WithDeadline(config)
	config.QPS = -1
	c, err := discovery.Dial(ctx, config)
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
	if err := found.await(ctx, c.Schemas(), own); err != nil {
		return Findings{}, err
	}
	out.Warnings = append(out.Warnings, found.unpublished(own)...)
	out.check(op, found, own, there)
	if err := out.conditions(ctx, c, op, own); err != nil {
		return Findings{}, err
	}
	for _, absent := range found.absent {
		brought := own.OfResource(absent.name) != nil || own.OfKind(absent.kind) != nil
		if !brought && !there.reported(absent.name, absent.kind) {
			out.warn(absent.err)
		}
	}
	return out, nil
}

// check checks the operator against its own schemas and those that are served, and against the latter alone.
func (f *Findings) check(op *dsl.Operator, found *served, own dsl.Knowledge, there *there) {
	f.Faults, f.Doubts = op.CheckSchemas(op.Resources(), dsl.Knowledge{
		OfResource: func(name dsl.ResourceName) *spec.Schema { return cmp.Or(own.OfResource(name), found.ofResource(name)) },
		OfKind:     func(kind schema.GroupVersionKind) *spec.Schema { return cmp.Or(own.OfKind(kind), found.ofKind(kind)) },
		Kinds:      there,
	})
	if !slices.ContainsFunc(op.Resources(), func(r *dsl.Resource) bool { return r.CRD != nil }) {
		return // own has no schemas
	}
	outdated, _ := op.CheckSchemas(op.Resources(), dsl.Knowledge{OfResource: found.ofResource, OfKind: found.ofKind, Kinds: there})
	for _, fault := range outdated {
		if !slices.ContainsFunc(f.Faults, func(known error) bool { return known.Error() == fault.Error() }) {
			f.Outdated = append(f.Outdated, fault)
		}
	}
}

// look finds a resource with all that goes with it.
func (s *served) look(ctx context.Context, c *discovery.Catalog, r *dsl.Resource) {
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
func (s *served) find(ctx context.Context, c *discovery.Catalog, name dsl.ResourceName, kind schema.GroupVersionKind) {
	var resolved discovery.Resource
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
	if errors.Is(err, discovery.ErrMissing) {
		text += "; what is said of it was not checked (is its CRD installed?)"
	}
	if !slices.Contains(f.Warnings, text) {
		f.Warnings = append(f.Warnings, text)
	}
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
func (s *served) add(name dsl.ResourceName, r discovery.Resource) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	s.names[name] = kind
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
}

// fill reads the schemas of all that was added.
func (s *served) fill(ctx context.Context, from *discovery.Schemas) (err error) {
	s.schemas, err = from.Of(ctx, s.kinds...)
	return err
}

// await is fill, with a little patience for schemas that are not published yet: that of a new CRD is
// a moment behind the CRD.
func (s *served) await(ctx context.Context, from *discovery.Schemas, own dsl.Knowledge) error {
	err := poll.PollUntilContextTimeout(ctx, lookAgain, publishing, true, func(ctx context.Context) (bool, error) {
		err := s.fill(ctx, from)
		return len(s.unpublished(own)) == 0, err
	})
	if poll.Interrupted(err) && ctx.Err() == nil {
		return nil // the missing resource is reported
	}
	return err
}

// unpublished says for which kinds there is no schema, neither here nor among the operator's own.
func (s *served) unpublished(own dsl.Knowledge) (out []string) {
	for _, kind := range s.kinds {
		if s.schemas[kind] == nil && own.OfKind(kind) == nil {
			out = append(out, fmt.Sprintf("the API server publishes no schema of kind %s of %s; what is said of it was not checked", kind.Kind, kind.GroupVersion()))
		}
	}
	return out
}

// ofResource returns the schema of a resource, by the name that the operator has for it.
func (s *served) ofResource(name dsl.ResourceName) *spec.Schema { return s.schemas[s.names[name]] }

// ofKind returns the schema of a kind.
func (s *served) ofKind(kind schema.GroupVersionKind) *spec.Schema { return s.schemas[kind] }
