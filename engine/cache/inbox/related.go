// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// relatedMost bounds what is noted of related objects for one owner. Past it, all is looked at.
const relatedMost = 32

// Related has the changes of an object's related objects since its last reconcile.
type Related struct {
	// All: too much to be noted singly.
	All     bool
	Changes []RelatedChange
}

// RelatedChange is one related object that changed: as it was before the first change, and as it is; of these
// one may be nil.
type RelatedChange struct {
	// Relation is the number of the relation.
	Relation      int
	Before, After *cached.Object
	uid           types.UID
}

// note adds an event.
func (r *Related) note(relation int, ev watch.Event) {
	change := RelatedChange{Relation: relation, uid: ev.UID, Before: ev.Old, After: ev.Object}
	if ev.Kind == watch.Deleted {
		change.Before, change.After = ev.Object, nil
	}
	for i, earlier := range r.Changes {
		if earlier.Relation == relation && earlier.uid == ev.UID {
			r.Changes[i].After = change.After
			return
		}
	}
	if r.All || len(r.Changes) == relatedMost || ev.UID == "" {
		r.All = true // the noted versions still say what woke the owner
		return
	}
	r.Changes = append(r.Changes, change)
}
