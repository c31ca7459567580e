// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// renamed moves what the operator has left on an object under its earlier names, before the pass opens the book. So the rest
// of the pass knows one name. Only an object that is being deleted keeps the earlier finalizer, for the server takes no new one.
// It returns the object as it is then, nil when it is gone.
func (r *resource) renamed(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *pass.Memory) (*unstructured.Unstructured, error) {
	if !r.engine.renamer.Finds(o) {
		return o, nil
	}
	moved, err := r.move(ctx, key, o, func(now *unstructured.Unstructured) {
		r.engine.metrics.Wrote(r.name, false, true)
		m.Writes.Add(inbox.Write{Cache: r.own, Key: key, UID: now.GetUID(), Version: now.GetResourceVersion(), Own: true})
		r.announce(key, r.own.Resource().GVR, now)
	})
	if err != nil || moved == nil {
		return nil, err
	}
	return r.shown(moved), nil
}

// renamedLeaving is renamed for an object that is about to be let go: marks of all names are taken off.
func (p *run) renamedLeaving(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !p.r.engine.renamer.Finds(live) {
		return live, nil
	}
	return p.r.move(ctx, p.key, live, func(now *unstructured.Unstructured) {
		p.family.Wrote(patch.Result{Object: now, Whole: true})
	})
}

// move moves the marks of earlier names. Wrote gets the object after each write. It returns nil when the object is gone.
func (r *resource) move(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, wrote func(now *unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	gvr := r.own.Resource().GVR
	target := patch.Target{Client: r.engine.writer(gvr, key.Namespace), Object: o, Resource: gvr.GroupResource()}
	moved, err := r.engine.renamer.Move(ctx, target, wrote)
	if err == nil && moved != nil {
		r.logOf(facts{key: key, object: o}, attempt.About{}).Info("moved what the operator had left on the object under an earlier name", "was", r.engine.op.Was)
	}
	return moved, err
}
