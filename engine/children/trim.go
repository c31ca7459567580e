// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// outdated returns the places of a record at which there is no child any more.
func (r *ownerRecord) outdated(record *ownership.Record) (out []ownership.Place) {
	if r.family.kinds.settled("") != nil {
		return nil
	}
	owner, parted := r.owner(), !r.pass.Deleting && slices.ContainsFunc(r.family.settings.Handlers, collision.Lasts)
	r.mu.Lock()
	defer r.mu.Unlock()
	var seen []ownership.Place
	for _, place := range record.Places() {
		there, known := r.family.kinds.claimed(owner, place)
		unconfirmed := r.unconfirmed.has(place)
		if there && unconfirmed {
			seen = append(seen, place)
		}
		_, entering := r.entering[place]
		if known && !there && !entering && !unconfirmed && !r.cut(owner, place) || parted && r.family.madeForDeletion(record, place) {
			out = append(out, place)
		}
	}
	r.unconfirmed.remove(seen...) // once for all: each call copies what is left
	return out
}

// cut reports whether the object at a place was applied for the owner, and somebody has cut the tie since: the label may be
// put on again. An object that this reconcile has applied without a tie does not count. The lock is held.
func (r *ownerRecord) cut(owner ownership.Owner, place ownership.Place) bool {
	kind, h := r.family.kinds.shows(place)
	if h == nil {
		return false
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	o, found := h.Object(key)
	return found && owner.Forgets(o) && !r.lister.has(id{kind.Resource().GVR, key})
}

// madeForDeletion reports whether a handler that runs for deletions alone has made the child at a
// place. If the owner lives, it left the selector before and came back, and such a child is from that time.
func (f *Family) madeForDeletion(record *ownership.Record, place ownership.Place) bool {
	title, _ := record.Title(place)
	spec, _ := ownership.ParseTitle(title)
	at := collision.HandlerOf(f.settings.Handlers, collision.Renamed(f.settings.Handlers, spec.Handler))
	return at >= 0 && collision.Lasts(f.settings.Handlers[at])
}

// copied reports whether the owner has no record of its own, and was given that of another object. A write without an answer
// may have put a record of its own there. The lock is held.
func (r *ownerRecord) copied() bool {
	if r.known.record != nil || r.known.text == "" || r.pass.Memory.unsure {
		return false
	}
	record, err := ownership.ParseRecord(r.known.text, r.pass.Object.GetUID())
	return record == nil && err == nil // one that cannot be read may be of a later version
}

// trim removes former children from the record of the owner, which is about to be written. A record of another object
// goes.
// It returns annotations that are to be written when the owner is, an empty one to be removed; nil for none.
func (r *ownerRecord) trim(owner *unstructured.Unstructured) map[string]patch.Note {
	if r.pass.Deleting {
		return nil
	}
	r.observe(owner)
	r.mu.Lock()
	before, copied, was := r.known.record, r.copied(), r.known.text
	r.mu.Unlock()
	switch {
	case before == nil && !copied:
		return nil
	case before == nil:
		return map[string]patch.Note{r.family.names.keys.Record: {Was: was}}
	}
	left := r.outdated(before)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(left) > 0 {
		record := before.Without(left...)
		text, err := record.Encode(r.pass.Object.GetUID())
		if err != nil {
			return nil // it was encoded before, and was longer
		}
		r.known.record, r.known.next, r.known.since = record, text, r.family.epoch(r.pass.Key)
		r.family.records.set(r.pass.Key, record)
	}
	if r.known.next == "" {
		return nil
	}
	r.pass.Memory.unsure = true
	return map[string]patch.Note{r.family.names.keys.Record: {Text: r.known.next, Alone: r.known.alone}}
}

// LeftBehind takes the children that were made for the deletion out of the owner's record, and the objects that were patched and
// are given back. It returns the annotation, or nil if there are none of these. The owner may come back and leave again: these children must not be taken for
// those that are made then.
func (s *Session) LeftBehind(live *unstructured.Unstructured) map[string]patch.Note {
	key := s.family.names.keys.Record
	record, err := ownership.ParseRecord(live.GetAnnotations()[key], live.GetUID())
	if err != nil {
		return nil // it was logged when it was read
	}
	made := slices.DeleteFunc(record.Places(), func(place ownership.Place) bool { return !s.family.madeForDeletion(record, place) })
	if len(made)+len(record.Targets()) == 0 {
		return nil
	}
	text, err := record.Without(made...).WithoutTargets().Encode(live.GetUID())
	if err != nil {
		return nil // it was encoded before, and was longer
	}
	return map[string]patch.Note{key: {Text: text}}
}

// close remembers the record when the reconcile has written. When every handler is done, the record has all children that are older than it.
func (r *ownerRecord) close(done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass.Memory.unsure = r.lost // what this reconcile has sent was answered
	r.known.closed = r.known.record != nil && (r.known.closed || done)
	r.keep()
}
