// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/cluster/leader"
)

// Hold holds the Leases of the operator for the cleaner, so that no process of the operator begins to work.
type Hold struct {
	// Context ends when a Lease is lost. Its cause names the new holder.
	Context context.Context

	end      context.CancelCauseFunc
	renewing sync.WaitGroup
	leases   []*lease
}

// lease is the Lease of one of the operator's names.
type lease struct {
	client          dynamic.ResourceInterface
	namespace, name string
	manager         string
	// identity names the cleaner as the holder.
	identity string
	// made means that the cleaner has created the Lease.
	made bool
}

// Hold takes the operator's Leases and renews them until [Hold.Release]. It returns an error if another process holds
// one.
func (c *Cleaner) Hold(ctx context.Context) (*Hold, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("taking the operator's Lease: %w", err)
	}
	identity := "cleanup_" + host + "_" + string(uuid.NewUUID())
	h := &Hold{}
	h.Context, h.end = context.WithCancelCause(ctx)
	for _, op := range c.names {
		l := &lease{
			client: c.dynamic.Resource(leases).Namespace(c.home(op)), namespace: c.home(op), name: op.LeaderLock(), manager: c.op.Name, identity: identity,
		}
		taken, err := l.take(ctx)
		if err != nil {
			return nil, errors.Join(err, h.Release())
		}
		if l.made {
			c.made = append(c.made, "Lease "+l.namespace+"/"+l.name)
		}
		if taken {
			h.leases = append(h.leases, l)
			h.renewing.Go(func() { l.renew(h.Context, h.end) })
		}
	}
	return h, nil
}

// Release stops the renewing and frees the Leases that the cleaner still holds.
func (h *Hold) Release() error {
	h.end(context.Canceled)
	h.renewing.Wait()
	var failed []error
	for _, l := range h.leases {
		failed = append(failed, l.release(context.WithoutCancel(h.Context)))
	}
	h.leases = nil
	return errors.Join(failed...)
}

// tries is how often a change is tried on an object that others change at the same time.
const tries = 5

// take takes the Lease. It is not taken if its namespace does not exist: no process can lead there.
func (l *lease) take(ctx context.Context) (taken bool, err error) {
	for range tries {
		taken, err = l.tryTake(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return false, fmt.Errorf("taking Lease %s/%s: %w", l.namespace, l.name, err)
	}
	return taken, nil
}

func (l *lease) tryTake(ctx context.Context) (taken bool, err error) {
	o, err := l.client.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"namespace": l.namespace, "name": l.name},
		}}
		l.mark(o, l.identity, leader.DefaultLeaseDuration)
		_, err = l.client.Create(ctx, o, metav1.CreateOptions{FieldManager: l.manager})
		if l.made = err == nil; apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	if holder, held := holds(o, time.Now()); held && holder != l.identity {
		return false, fmt.Errorf("%s holds it: a process of the operator runs", holder)
	}
	return true, l.write(ctx, o, l.identity, leader.DefaultLeaseDuration)
}

// renew renews the Lease until the context ends, or the cleaner has deleted the Lease. It ends the context when the
// Lease is lost.
func (l *lease) renew(ctx context.Context, end context.CancelCauseFunc) {
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(leader.DefaultRetryPeriod):
		}
		begun := time.Now()
		o, err := l.client.Get(ctx, l.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		if err == nil {
			if holder, _ := holds(o, begun); holder != l.identity {
				end(fmt.Errorf("%q has taken Lease %s/%s", holder, l.namespace, l.name))
				return
			}
			err = l.write(ctx, o, l.identity, leader.DefaultLeaseDuration)
		}
		switch {
		case err == nil:
			renewed = begun
		case time.Since(renewed) > leader.DefaultRenewDeadline:
			end(fmt.Errorf("renewing Lease %s/%s: %w", l.namespace, l.name, err))
			return
		}
	}
}

// release frees the Lease, or deletes it if the cleaner has made it.
func (l *lease) release(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, leader.DefaultRenewDeadline)
	defer cancel()
	for range tries {
		var o *unstructured.Unstructured
		o, err = l.client.Get(ctx, l.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			if holder, _ := holds(o, time.Now()); holder != l.identity {
				return nil
			}
			if uid, version := o.GetUID(), o.GetResourceVersion(); l.made {
				err = l.client.Delete(ctx, l.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
			} else {
				err = l.write(ctx, o, "", time.Second)
			}
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("releasing Lease %s/%s, which expires in %s: %w", l.namespace, l.name, leader.DefaultLeaseDuration, err)
	}
	return nil
}

// write sets the holder of a Lease, in the version that was read.
func (l *lease) write(ctx context.Context, o *unstructured.Unstructured, holder string, lasts time.Duration) error {
	l.mark(o, holder, lasts)
	_, err := l.client.Update(ctx, o, metav1.UpdateOptions{FieldManager: l.manager})
	return err
}

// mark sets the holder of a Lease, and the time of renewal.
func (l *lease) mark(o *unstructured.Unstructured, holder string, lasts time.Duration) {
	spec, _ := o.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	now := metav1.NowMicro().UTC().Format(metav1.RFC3339Micro)
	if spec["holderIdentity"] != holder {
		transitions, _ := spec["leaseTransitions"].(int64)
		spec["leaseTransitions"], spec["acquireTime"] = transitions+1, now
	}
	spec["holderIdentity"], spec["renewTime"], spec["leaseDurationSeconds"] = holder, now, int64(lasts/time.Second)
	o.Object["spec"] = spec
}
