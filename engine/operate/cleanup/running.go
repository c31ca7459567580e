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
	"k8s.io/apimachinery/pkg/types"
)

// Running names a process of the operator that works, as far as that is visible: it renews the lock, or the
// Deployment has Pods. Empty means that no process is visible.
func (c *Cleaner) Running(ctx context.Context, now time.Time) (string, error) {
	if c.set.Deployment != "" {
		o, err := c.dynamic.Resource(deployments).Namespace(c.set.Namespace).Get(ctx, c.set.Deployment, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("reading Deployment %s/%s: %w", c.set.Namespace, c.set.Deployment, err)
		}
		if err == nil {
			wanted, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			there, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
			if n := max(wanted, there); n > 0 || !found {
				return fmt.Sprintf("Deployment %s/%s has %d Pods", c.set.Namespace, c.set.Deployment, n), nil
			}
		}
	}
	for _, op := range c.names {
		o, err := c.dynamic.Resource(leases).Namespace(c.home(op)).Get(ctx, op.LeaderLock(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading Lease %s/%s: %w", c.home(op), op.LeaderLock(), err)
		}
		if holder, held := holds(o, now); held {
			return fmt.Sprintf("%s renews Lease %s/%s", holder, c.home(op), op.LeaderLock()), nil
		}
	}
	return c.runsElsewhere(ctx, now)
}

// holds returns the holder of a Lease, and whether the Lease is still valid. The lock of mode life is valid while it
// exists: the garbage collector deletes it with the Pod that holds it.
func holds(o *unstructured.Unstructured, now time.Time) (holder string, held bool) {
	if pods := o.GetOwnerReferences(); len(pods) > 0 {
		return pods[0].Name, true
	}
	holder, _, _ = unstructured.NestedString(o.Object, "spec", "holderIdentity")
	renewed, _, _ := unstructured.NestedString(o.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaseDurationSeconds")
	at, err := time.Parse(time.RFC3339Nano, renewed)
	return holder, holder != "" && err == nil && now.Before(at.Add(time.Duration(seconds)*time.Second))
}

// Stop scales the operator's Deployment to zero, and waits until none of its processes is visible, or ctx ends.
func (c *Cleaner) Stop(ctx context.Context) error {
	const none = `{"spec":{"replicas":0}}`
	_, err := c.dynamic.Resource(deployments).Namespace(c.set.Namespace).Patch(ctx, c.set.Deployment, types.MergePatchType, []byte(none), metav1.PatchOptions{FieldManager: c.op.Name})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("scaling Deployment %s/%s: %w", c.set.Namespace, c.set.Deployment, err)
	}
	for {
		running, err := c.Running(ctx, time.Now())
		if err != nil || running == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the operator's end: %s", running)
		case <-time.After(time.Second):
		}
	}
}
