// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// looks are the fields that handlers look at in children, by the names of the children: fields that their templates set,
// and fields that expressions read. Others change the remaining fields all the time, and no template depends on those. A
// name is missing if handlers may look at anything.
type looks struct {
	keys  ownership.Keys
	names map[string]look
}

// look has the fields that handlers look at in the children of one name.
type look struct {
	fields cached.Fields
	// counts reports whether handlers look at fields that a field manager has set.
	counts func(manager string) bool
}

func looksOf(op *dsl.Operator, r *dsl.Resource) looks {
	out := looks{keys: ownership.KeysOf(op), names: map[string]look{}}
	for _, made := range r.Makes {
		view, known := r.ChildView(made.Name)
		if !known {
			continue
		}
		policy := dsl.DriftFields
		if view.Strict {
			policy = dsl.DriftStrict
		}
		out.names[made.Name] = look{cached.FieldsOf(append(view.Fields, out.own()...)), drift.OthersOf(policy, op.Name, view.Allow).Count}
	}
	return out
}

// own returns the fields that the engine itself looks at in a child: its ties to the owner, and its deletion.
func (l looks) own() []dsl.Path {
	out := []dsl.Path{{"apiVersion"}, {"kind"}, {"metadata", "ownerReferences"}, {"metadata", "deletionTimestamp"}}
	for _, key := range l.keys.All() {
		out = append(out, dsl.Path{"metadata", "labels", key}, dsl.Path{"metadata", "annotations", key})
	}
	return out
}

// idle reports whether an event changed only fields of a child that no handler looks at.
func (l looks) idle(ev watch.Event) bool {
	if ev.Kind != watch.Updated || len(l.names) == 0 || !l.keys.Made(ev.Object) {
		return false
	}
	title, named := ownership.ParseTitle(ownership.Annotation(ev.Object, l.keys.Child))
	at, known := l.names[title.Name]
	return named && known && !at.fields.Differ(ev.Object, ev.Old, at.counts)
}
