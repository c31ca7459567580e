// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// calls has the methods that packages below call on the engine. They are not methods of [Engine] because that type is exported.
type calls struct{ *Engine }

// VersionsWentBack implements [watch.Listener]: the register may have changed, and the versions of own writes may be those of
// other writes now.
func (e calls) VersionsWentBack() {
	e.register.Doubt()
	for r := range e.resources.All {
		r.box.ForgetEchoes()
	}
}

// Feeds implements [feed.Owner].
func (e calls) Feeds() (out []*feed.Feed) {
	for r := range e.resources.All {
		out = append(append(out, r.Feeds()...), r.family.Retired.Feeds()...)
	}
	return append(out, e.indexes.Feeds()...)
}

// ScopeChanged implements [feed.Owner]: rights are needed in other namespaces.
func (e calls) ScopeChanged() { e.access.Wake() }

// CRDSeen implements [feed.Owner]: the schema may have changed.
func (e calls) CRDSeen(ev watch.Event) {
	for r := range e.resources.All {
		if !ev.Initial && r.own.Resource().GVR.GroupResource().String() == ev.Key.Name {
			r.schemas.Add(1)
		}
	}
	e.access.Wake()
	e.recheck.CRDChanged()
}
