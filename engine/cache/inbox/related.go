// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// relatedMost bounds the recorded changes of related objects for one owner. If there are more, all related objects count
// as changed.
const relatedMost = 32

// Related has the changes of an object's related objects since its last reconcile.
type Related struct {
	// All is true if there were too many changes to record each.
	All     bool
	Changes []RelatedChange
}

// RelatedChange is one related object that changed, before the first change and now. One of the two may be nil.
type RelatedChange struct {
	// Relation is the number of the relation.
	Relation      int
	Before, After *cached.Object
	uid           types.UID
}

// note records an event.
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
		r.All = true // the recorded versions still say what woke the owner
		return
	}
	r.Changes = append(r.Changes, change)
}
