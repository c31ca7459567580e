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
	// publishing is how long the schema of a CRD may be missing after the CRD is served.
	publishing = 3 * time.Second
	// lookAgain is the interval of checks for it.
	lookAgain = 200 * time.Millisecond
)

// Findings are the results of a check.
type Findings struct {
	// Faults are contradictions to the schemas.
	Faults []error
	// Outdated are parts that fit the CRDs of the configuration, but not those of the cluster.
	Outdated []error
	// Doubts are parts that may be right all the same.
	Doubts []error
	// Notes are features that do not work in this cluster, whatever the configuration says.
	Notes []error
	// Warnings name parts that could not be checked, such as a resource whose CRD is missing.
	Warnings []string
}

// Check checks an operator against the cluster that config reaches. It looks up every resource, child and related
// resource, and checks every expression and template against the served schemas. Own has the schemas of the operator's
// own CRDs, which replace the served ones. It writes nothing. An error means that the cluster could not be asked.
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

// check checks the operator against its own schemas and the served ones, and then against the served ones alone.
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

// look looks up a resource with its children, patched objects and related resources.
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

// find looks up a resource, by its kind if there is one.
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

// warn adds a warning that something cannot be looked up.
func (f *Findings) warn(err error) {
	text := err.Error()
	if errors.Is(err, discovery.ErrMissing) {
		text += "; what is said of it was not checked (is its CRD installed?)"
	}
	if !slices.Contains(f.Warnings, text) {
		f.Warnings = append(f.Warnings, text)
	}
}

// served are the resources of an operator that the API server serves, with their schemas.
type served struct {
	names   map[dsl.ResourceName]schema.GroupVersionKind
	kinds   []schema.GroupVersionKind
	schemas map[schema.GroupVersionKind]*spec.Schema
	// absent are resources that were not found.
	absent []absent
}

// absent is a resource that was not found, with the error. If kind is set, it was looked for by its kind.
type absent struct {
	name dsl.ResourceName
	kind schema.GroupVersionKind
	err  error
}

func newServed() *served { return &served{names: map[dsl.ResourceName]schema.GroupVersionKind{}} }

// add notes a served resource, and the name with which it was looked up.
func (s *served) add(name dsl.ResourceName, r discovery.Resource) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	s.names[name] = kind
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
}

// fill reads the schemas of all resources that were added.
func (s *served) fill(ctx context.Context, from *discovery.Schemas) (err error) {
	s.schemas, err = from.Of(ctx, s.kinds...)
	return err
}

// await is fill, and waits for schemas that are not published yet: the schema of a new CRD appears a moment after the
// CRD. The wait is over with the first look that began after it: it ends no look, because a busy server may take longer
// than that to answer.
func (s *served) await(ctx context.Context, from *discovery.Schemas, own dsl.Knowledge) error {
	begun := time.Now()
	return poll.PollUntilContextCancel(ctx, lookAgain, true, func(ctx context.Context) (bool, error) {
		last := time.Since(begun) >= publishing
		err := s.fill(ctx, from)
		return last || len(s.unpublished(own)) == 0, err
	})
}

// unpublished returns warnings for kinds without a schema, both in the cluster and among the operator's own.
func (s *served) unpublished(own dsl.Knowledge) (out []string) {
	for _, kind := range s.kinds {
		if s.schemas[kind] == nil && own.OfKind(kind) == nil {
			out = append(out, fmt.Sprintf("the API server publishes no schema of kind %s of %s; what is said of it was not checked", kind.Kind, kind.GroupVersion()))
		}
	}
	return out
}

// ofResource returns the schema of a resource, by the operator's name for it.
func (s *served) ofResource(name dsl.ResourceName) *spec.Schema { return s.schemas[s.names[name]] }

// ofKind returns the schema of a kind.
func (s *served) ofKind(kind schema.GroupVersionKind) *spec.Schema { return s.schemas[kind] }
