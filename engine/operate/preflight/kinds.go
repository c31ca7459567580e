// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/builtin"
	"github.com/handwerk-dev/handwerk/dsl/kinds"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// there are the kinds of a cluster and of the operator's own CRDs. It records the kinds that a check has reported with
// their place in the configuration.
type there struct {
	*kinds.List
	kinds     []schema.GroupVersionKind
	resources []schema.GroupVersionResource
}

// kindsOf reads all kinds of the cluster.
func kindsOf(ctx context.Context, c *discovery.Catalog, op *dsl.Operator) (*there, error) {
	kubernetes, err := builtin.Open()
	if err != nil {
		return nil, err
	}
	served, broken, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	list := &kinds.List{
		Own: kubernetes.Own, Unsure: func(group string) bool { return slices.Contains(broken, group) },
		Where: "the API server", Final: true,
	}
	for _, r := range served {
		list.Kinds = append(list.Kinds, kinds.Kind{
			GroupVersionKind: r.GVR.GroupVersion().WithKind(r.Kind), Resource: r.GVR.Resource, Short: r.Short, Namespaced: r.Namespaced,
			Watched: r.Watchable() == nil,
		})
	}
	for _, r := range op.Resources() {
		if r.CRD != nil {
			list = list.With(r.CRD)
		}
	}
	return &there{List: list}, nil
}

// Kind looks up a kind, and records a failure.
func (t *there) Kind(wanted schema.GroupVersionKind) (shape.Kind, error) {
	known, err := t.List.Kind(wanted)
	if err != nil {
		t.kinds = append(t.kinds, wanted)
	}
	return known, err
}

// Resource looks up a resource, and records a failure.
func (t *there) Resource(wanted schema.GroupVersionResource, watched bool) (shape.Kind, error) {
	known, err := t.List.Resource(wanted, watched)
	if err != nil {
		t.resources = append(t.resources, wanted)
	}
	return known, err
}

// reported reports whether a check has reported a kind, or the resource if the kind is empty.
func (t *there) reported(name dsl.ResourceName, kind schema.GroupVersionKind) bool {
	if kind.Empty() {
		return slices.Contains(t.resources, name.GVR())
	}
	return slices.Contains(t.kinds, kind)
}
