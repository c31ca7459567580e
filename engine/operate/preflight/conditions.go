// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/openapi"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// conditions adds notes about schemas that drop conditions of the engine. Conditions in the configuration are checked
// with its other parts.
func (f *Findings) conditions(ctx context.Context, c *discovery.Catalog, op *dsl.Operator, own dsl.Knowledge) error {
	for _, r := range op.Handled() {
		if r.Cache == dsl.CacheMetadata {
			continue // a metadata cache shows no conditions, so the engine writes none
		}
		lacks, status, err := conditionsLack(ctx, c, r, own)
		if err != nil {
			return err
		}
		if lacks == "" {
			continue
		}
		fault := &dsl.Fault{
			Place: dsl.Place{Resource: r, Field: "resource"},
			Err:   fmt.Errorf("%s, so the engine does not write its own: %s", lacks, ownConditions(r, status)),
		}
		note := error(fault)
		if op.Placed != nil {
			note = op.Placed(fault)
		}
		f.Notes = append(f.Notes, note)
	}
	return nil
}

// conditionsLack returns what a schema lacks to keep conditions, and whether there is a status subresource. The text is
// empty if it lacks nothing, or if the schema is unknown.
func conditionsLack(ctx context.Context, c *discovery.Catalog, r *dsl.Resource, own dsl.Knowledge) (lacks string, status bool, err error) {
	if s := own.OfResource(r.Name); s != nil {
		return openapi.ConditionsLack(s), true, nil // each CRD of a configuration has the subresource
	}
	served, err := c.Resolve(ctx, r.Name)
	if err == nil {
		has, err := c.Status(ctx, served)
		if !apierrors.IsForbidden(err) {
			return has.Conditions.Lacks, served.Status, err
		}
	}
	return "", false, nil // a missing resource is reported elsewhere
}

// ownConditions returns the conditions that the engine writes to objects of a resource by itself. Ready needs a status
// subresource.
func ownConditions(r *dsl.Resource, status bool) string {
	const always = conditions.HandlersFailing + ", " + conditions.Paused
	if r.KeepsReady() && status {
		return strings.Join([]string{dsl.Ready, conditions.Reconciling, conditions.Stalled, always}, ", ")
	}
	return always
}
