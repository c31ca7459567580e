// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// ownerWriter writes the owner apart from what its handlers change: its record of children, and the finalizer. Its methods may be called
// by several goroutines.
type ownerWriter struct {
	family *Family
	pass   *Pass

	mu sync.Mutex
	// base is the owner as the reconcile has written it so far.
	base *unstructured.Unstructured
	// holds: something has to be done about children of this reconcile before the owner goes.
	holds bool
}

// get returns the owner as the reconcile has written it so far.
func (w *ownerWriter) get() *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base
}

// set notes the owner as the reconcile has written it.
func (w *ownerWriter) set(base *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.base = base
}

// need notes that something has to be done about a child before the owner goes.
func (w *ownerWriter) need() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = true
}

// marks returns the marks that put the finalizer on an owner, if children of this reconcile need it and the owner lacks it.
func (w *ownerWriter) marks(owner *unstructured.Unstructured) patch.Marks {
	w.mu.Lock()
	defer w.mu.Unlock()
	finalizer := w.family.settings.Operator.Finalizer()
	if !w.holds || w.pass.Deleting || slices.Contains(owner.GetFinalizers(), finalizer) {
		return patch.Marks{}
	}
	return patch.Marks{Finalizer: finalizer, Add: true}
}

// target returns the owner as the target of a write.
func (w *ownerWriter) target() patch.Target {
	served := w.family.settings.Own.Resource()
	return patch.Target{
		Client: w.family.settings.Host.Client(served.GVR, w.pass.Key.Namespace), Object: w.get(),
		Resource: served.GVR.GroupResource(), Manager: w.family.settings.Operator.Name,
	}
}

// reread reads the owner before its record is written, where the cache does not show the owner any more. It may be out of sight alone,
// and live: what is made to see it off is found again by the record then as it would be otherwise.
func (w *ownerWriter) reread(ctx context.Context) error {
	live, err := w.family.settings.Host.Read(ctx, w.family.settings.Own.Resource().GVR, w.pass.Key)
	switch {
	case err != nil:
		return fmt.Errorf("reading it: %w", err)
	case live == nil || live.GetUID() != w.pass.Object.GetUID():
		return dsl.Permanent(errors.New("the owner is gone, so there is no record to enter it into")) // no later pass would find the child
	}
	w.set(live)
	return nil
}
