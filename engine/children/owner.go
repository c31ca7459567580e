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

// ownerWriter writes the parts of the owner that belong to the engine: its inventory of children, and the finalizer.
// Its methods may be called by several goroutines.
type ownerWriter struct {
	family *Family
	in     *Input

	mu sync.Mutex
	// base is the owner as the reconcile has written it so far.
	base *unstructured.Unstructured
	// holds is true if children of this reconcile need the owner's finalizer.
	holds bool
}

// get returns the owner as the reconcile has written it so far.
func (w *ownerWriter) get() *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base
}

// set stores the owner as the reconcile has written it.
func (w *ownerWriter) set(base *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.base = base
}

// need records that a child needs the owner's finalizer.
func (w *ownerWriter) need() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = true
}

// marks returns the marks that add the finalizer to an owner, if children of this reconcile need it and the owner lacks
// it.
func (w *ownerWriter) marks(owner *unstructured.Unstructured) patch.Marks {
	w.mu.Lock()
	defer w.mu.Unlock()
	finalizer := w.family.settings.Operator.Finalizer()
	if !w.holds || w.in.Deleting || slices.Contains(owner.GetFinalizers(), finalizer) {
		return patch.Marks{}
	}
	return patch.Marks{Finalizer: finalizer, Add: true}
}

// target returns the owner as the target of a write.
func (w *ownerWriter) target() patch.Target {
	served := w.family.settings.Own.Resource()
	return patch.Target{
		Client: w.family.settings.Host.Client(served.GVR, w.in.Key.Namespace), Object: w.get(),
		Resource: served.GVR.GroupResource(), Manager: w.family.settings.Operator.Name,
	}
}

// reread reads the owner before its inventory is written, if the cache does not show the owner. The owner may still
// exist, for example outside the selectors. Its inventory then has to list the children that handlers make for its
// deletion.
func (w *ownerWriter) reread(ctx context.Context) error {
	live, err := w.family.settings.Host.Read(ctx, w.family.settings.Own.Resource().GVR, w.in.Key)
	switch {
	case err != nil:
		return fmt.Errorf("reading it: %w", err)
	case live == nil || live.GetUID() != w.in.Object.GetUID():
		return dsl.Permanent(errors.New("the owner is gone, so there is no inventory to enter it into")) // no later reconcile would find the child
	}
	w.set(live)
	return nil
}
