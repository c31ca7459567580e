// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
)

// namesake is a deployment of the operator in another namespace.
type namesake struct {
	lock *unstructured.Unstructured
	// overlaps: it works in a namespace of this one's scope.
	overlaps bool
}

// namesakes returns the other deployments of the operator, found by their Leases. The account needs the right to list
// Leases.
func (c *Cleaner) namesakes(ctx context.Context) (out []namesake, err error) {
	for _, op := range c.names {
		list, err := c.dynamic.Resource(leases).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, op.LeaderLock()).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("looking for operators of this name in other namespaces: %w", err)
		}
		for i := range list.Items {
			lock := &list.Items[i]
			text, marked := lock.GetAnnotations()[op.ScopeAnnotation()]
			if marked && lock.GetName() == op.LeaderLock() && lock.GetNamespace() != c.home(op) {
				out = append(out, namesake{lock, source.ScopesOverlap(c.op.Scope, source.DecodeScope(text))})
			}
		}
	}
	return out, nil
}

// runsElsewhere names a process in another namespace that works on the same objects; empty if none is visible. An
// account that may not list Leases finds none.
func (c *Cleaner) runsElsewhere(ctx context.Context, now time.Time) (string, error) {
	others, err := c.namesakes(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	for _, other := range others {
		if holder, held := holds(other.lock, now); held && other.overlaps {
			return fmt.Sprintf("%s renews Lease %s/%s", holder, other.lock.GetNamespace(), other.lock.GetName()), nil
		}
	}
	return "", nil
}

// inScope reports whether objects of a namespace belong to this deployment alone. Chosen are the namespaces whose labels match.
func (c *Cleaner) inScope(namespace string, chosen map[string]bool) bool {
	return namespace != metav1.NamespaceAll && source.NewScope(source.ScopeSettings{Of: c.op.Scope}).Matches(namespace) &&
		(c.op.Scope.NamespaceSelector == "" || chosen[namespace])
}

// choose looks for the namespaces whose labels match the scope, if labels count and only objects in the scope are searched.
func (c *Cleaner) choose(ctx context.Context, out *Findings) {
	if c.op.Scope.NamespaceSelector == "" || !out.Alone && len(out.Beside) == 0 {
		return
	}
	list, err := c.metadata.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: c.op.Scope.NamespaceSelector})
	if err != nil {
		out.Unseen = append(out.Unseen, fmt.Errorf("looking for the namespaces of the operator's scope: %w", err))
		return
	}
	out.chosen = map[string]bool{}
	for _, ns := range list.Items {
		out.chosen[ns.GetName()] = true
	}
}
