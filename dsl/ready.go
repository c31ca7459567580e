// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "slices"

// KeepsReady reports whether the engine sets the condition [Ready] of the objects, if their status has conditions.
// It is True when all handlers are done with the object and its children are ready. By default the engine sets it
// when the CRD is the operator's own, when a handler that keeps children and reports on them runs for every change
// of the object, and when no handler is known to set the condition, or may do so.
func (r *Resource) KeepsReady() bool {
	if r.Cache == CacheMetadata || r.setsReady() != nil {
		return false
	}
	if r.Ready != nil {
		return *r.Ready
	}
	unknown := func(h *Handler) bool { return !h.ResourceWide && !h.Known.Reads.Complete }
	offers := func(h *Handler) bool {
		return h.Level() && slices.ContainsFunc(h.Needs, func(n Need) bool { return n.Offered })
	}
	return r.CRD != nil && !slices.ContainsFunc(r.handlers, unknown) && slices.ContainsFunc(r.handlers, offers)
}

// setsReady returns the first handler that is known to set the condition Ready, or nil.
func (r *Resource) setsReady() *Handler {
	i := slices.IndexFunc(r.handlers, func(h *Handler) bool { return h.Machine != nil || slices.Contains(h.Known.Conditions, Ready) })
	if i < 0 {
		return nil
	}
	return r.handlers[i]
}

// checkReady checks the field Ready.
func (r *Resource) checkReady(c check) {
	if r.Ready == nil || !*r.Ready {
		return
	}
	sets, level := r.setsReady(), func(h *Handler) bool { return h.Level() }
	switch {
	case r.Cache == CacheMetadata:
		c.unwanted("ready", "is not for cache %s, which does not show the conditions", CacheMetadata)
	case BuiltIn(r.Name.Group):
		c.unwanted("ready", "is not for kinds of Kubernetes itself: their conditions are their controllers'")
	case sets != nil:
		c.unwanted("ready", "handler %s sets the condition %s itself", sets.ID, Ready)
	case !r.Open && !slices.ContainsFunc(r.handlers, level):
		c.unwanted("ready", "needs a handler with causes: [reconcile]")
	}
}
