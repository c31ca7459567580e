// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	poll "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/outage"
)

// publishing is how long the schema of a CRD may take after the CRD is served.
const publishing = 3 * time.Second

// Findings are what holding an operator against a cluster has brought to light.
type Findings struct {
	// Faults are what does not fit the schemas that the cluster has.
	Faults []error
	// Warnings name what could not be looked at, such as a resource whose CRD is not there.
	Warnings []string
}

// Check holds an operator against the cluster that config reaches: every resource, child and related
// resource is looked for, and every expression and template checked against the schemas that are
// served. The API server is asked, too, whether it would take the CRDs that the operator brings along,
// if that is allowed. It writes nothing. The error tells that the cluster could not be asked.
func Check(ctx context.Context, op *dsl.Operator, config *rest.Config) (Findings, error) {
	config = outage.WithDeadline(config)
	config.QPS = -1
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Findings{}, fmt.Errorf("connecting: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return Findings{}, fmt.Errorf("connecting: %w", err)
	}
	if _, err := typed.ServerVersionWithContext(ctx); err != nil {
		return Findings{}, fmt.Errorf("asking the API server: %w", err)
	}
	l := &looker{
		catalog: catalog.New(typed.DiscoveryClient, dyn, typed.AuthorizationV1()),
		found:   newServedSchemas(),
	}
	for _, r := range op.Resources() {
		l.look(ctx, r)
	}
	if err := l.found.await(ctx, catalog.NewSchemas(typed.DiscoveryClient)); err != nil {
		return Findings{}, err
	}
	out := Findings{Warnings: append(l.warnings, l.found.unpublished()...)}
	i := &installer{op: op, client: dyn.Resource(crdResource())}
	for _, r := range op.Resources() {
		if err := out.tryCRD(ctx, i, r); err != nil {
			return Findings{}, err
		}
		out.Faults = append(out.Faults, r.CheckSchemas(l.found)...)
	}
	return out, nil
}

// tryCRD adds what the API server would refuse of a resource's CRD.
func (f *Findings) tryCRD(ctx context.Context, i *installer, r *dsl.Resource) error {
	if r.CRD == nil {
		return nil
	}
	refused, err := i.try(ctx, r.CRD)
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

// looker looks for what an operator names.
type looker struct {
	catalog  *catalog.Catalog
	found    *servedSchemas
	warnings []string
}

// look finds a resource with all that goes with it.
func (l *looker) look(ctx context.Context, r *dsl.Resource) {
	l.resource(ctx, r.Name)
	for _, owned := range r.Owned() {
		if owned.Kind.Empty() {
			l.resource(ctx, owned.Name)
		} else {
			l.kind(ctx, owned.Kind)
		}
	}
	for _, child := range r.Made() {
		if !child.Kind.Empty() {
			l.kind(ctx, child.Kind)
		}
	}
	for _, relation := range r.Relations() {
		l.resource(ctx, relation.Resource)
	}
}

func (l *looker) resource(ctx context.Context, name dsl.ResourceName) {
	served, err := l.catalog.Resolve(ctx, name)
	if err != nil {
		l.warn(err)
		return
	}
	l.found.add(served, name)
}

func (l *looker) kind(ctx context.Context, kind schema.GroupVersionKind) {
	served, err := l.catalog.KindOf(ctx, kind)
	if err != nil {
		l.warn(err)
		return
	}
	l.found.add(served)
}

func (l *looker) warn(err error) {
	text := err.Error()
	if errors.Is(err, catalog.ErrMissing) {
		text += "; what is said of it was not checked (is its CRD installed?)"
	}
	if !slices.Contains(l.warnings, text) {
		l.warnings = append(l.warnings, text)
	}
}

// servedSchemas are the schemas of what the API server serves of an operator's resources.
type servedSchemas struct {
	names   map[dsl.ResourceName]schema.GroupVersionKind
	kinds   []schema.GroupVersionKind
	schemas map[schema.GroupVersionKind]*spec.Schema
}

func newServedSchemas() *servedSchemas {
	return &servedSchemas{names: map[dsl.ResourceName]schema.GroupVersionKind{}}
}

// add notes a resource that is served, and the names under which it was asked for.
func (s *servedSchemas) add(r catalog.Resource, names ...dsl.ResourceName) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	for _, name := range names {
		s.names[name] = kind
	}
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
}

// fill reads the schemas of all that was added.
func (s *servedSchemas) fill(ctx context.Context, from *catalog.Schemas) (err error) {
	s.schemas, err = from.Of(ctx, s.kinds...)
	return err
}

// await is fill, with a little patience for schemas that are not published yet: that of a new CRD is
// a moment behind the CRD.
func (s *servedSchemas) await(ctx context.Context, from *catalog.Schemas) error {
	err := poll.PollUntilContextTimeout(ctx, lookAtCRD, publishing, true, func(ctx context.Context) (bool, error) {
		err := s.fill(ctx, from)
		return len(s.unpublished()) == 0, err
	})
	if poll.Interrupted(err) && ctx.Err() == nil {
		return nil // what is missing is told
	}
	return err
}

// unpublished says for which kinds there is no schema.
func (s *servedSchemas) unpublished() (out []string) {
	for _, kind := range s.kinds {
		if s.schemas[kind] == nil {
			out = append(out, fmt.Sprintf("the API server publishes no schema of kind %s of %s; what is said of it was not checked", kind.Kind, kind.GroupVersion()))
		}
	}
	return out
}

// OfResource implements [dsl.SchemaSource].
func (s *servedSchemas) OfResource(name dsl.ResourceName) *spec.Schema {
	return s.schemas[s.names[name]]
}

// OfKind implements [dsl.SchemaSource].
func (s *servedSchemas) OfKind(kind schema.GroupVersionKind) *spec.Schema { return s.schemas[kind] }
