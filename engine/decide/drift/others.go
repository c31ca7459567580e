// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// Others are the field managers whose fields are removed from a child if its template lacks them. The zero value means
// people who edit with kubectl.
type Others struct {
	// All: every manager counts, except the control plane, the operator itself and the allowed managers.
	All bool
	// Own is the operator's field manager.
	Own string
	// Allowed are managers whose fields stay.
	Allowed []string
}

// OthersOf returns the managers that count under a policy of drift.
func OthersOf(policy dsl.DriftPolicy, own string, allowed []string) Others {
	return Others{All: policy == dsl.DriftStrict, Own: own, Allowed: allowed}
}

// Count reports whether the fields of a manager count.
func (o Others) Count(manager string) bool {
	switch {
	case slices.Contains(o.Allowed, manager):
		return false
	case !o.All:
		return bookkeeping.HandOf(manager) == bookkeeping.Editing
	}
	own := manager == o.Own || strings.HasPrefix(manager, o.Own+"/") // of a patch, and of the mark in the status
	return !own && !bookkeeping.ControlPlane(manager)
}

// Set reports whether an entry of managedFields has fields that count. Replicas that were set by the subresource scale
// have an entry only if the template has replicas, and then the apply restores them.
func (o Others) Set(e metav1.ManagedFieldsEntry) bool {
	return e.Subresource == "" && o.Count(e.Manager)
}
