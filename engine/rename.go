// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/memory"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// renamed moves what the operator has left on an object under its earlier names, before the pass opens the book. So the rest
// of the pass knows one name. Only an object that is being deleted keeps the earlier finalizer, for the server takes no new one.
// It returns the object as it is then, nil when it is gone.
func (r *resource) renamed(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *memory.Memory) (*unstructured.Unstructured, error) {
	if !r.engine.renamer.Finds(o) {
		return o, nil
	}
	gvr := r.own.Resource().GVR
	target := patch.Target{Client: r.engine.writer(gvr, key.Namespace), Object: o, Resource: gvr.GroupResource()}
	moved, err := r.engine.renamer.Move(ctx, target, func(now *unstructured.Unstructured) {
		r.engine.metrics.Wrote(r.name, false, true)
		m.Writes.Add(inbox.Write{Cache: r.own, Key: key, UID: now.GetUID(), Version: now.GetResourceVersion(), Own: true})
		r.announce(key, gvr, now)
	})
	if err != nil || moved == nil {
		return nil, err
	}
	r.logOf(facts{key: key, object: o}, attempt.About{}).Info("moved what the operator had left on the object under an earlier name", "was", r.engine.op.Was)
	return r.shown(moved), nil
}
