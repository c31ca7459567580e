// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// knownRecord is what this process knows of an owner's record from one reconcile to the next.
type knownRecord struct {
	// record is the owner's, nil where there is none, and text the annotation as it is stored. An object that is no child any
	// more is taken out of the record at once, and written when there is something to write.
	record *ownership.Record
	text   string
	// next is the text of the record where that differs from the stored one, empty where it does not. Since is how often the API
	// server's versions had gone back then.
	next  string
	since uint64
	// alone: next is written also where nothing else is to be written.
	alone bool
	// closed: a reconcile was finished since there is a record, so what was there before is in it.
	closed bool
}

// ownerRecord is the owner's record of children in one reconcile: it is read, enters children before they are applied, and loses those
// that are gone. Its methods may be called by several goroutines.
type ownerRecord struct {
	family      *Family
	pass        *Pass
	writer      *ownerWriter
	lister      *lister
	journal     *journal
	unconfirmed *unconfirmed

	// turn is held while the record is written.
	turn sync.Mutex

	mu    sync.Mutex // guards what follows, and what the memory has of it
	known knownRecord
	// entering are the places that this reconcile enters into the record; true while nothing was known to be there when it was entered.
	entering map[ownership.Place]bool
	// lost: a write of the record by an earlier reconcile got no answer, and the owner has not been read since.
	lost bool
	// fault is why the server did not take the record.
	fault error
}

// owner is the handled object as the owner of children.
func (r *ownerRecord) owner() ownership.Owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ownership.Owner{
		Object: r.pass.Object, Namespaced: r.family.settings.Own.Resource().Namespaced, Keys: r.family.names.keys,
		Record: r.known.record, Closed: r.known.closed,
	}
}

// read reads the owner's record. A record that cannot be read counts as absent.
func (r *ownerRecord) read() {
	if known := r.pass.Memory.record; known != nil {
		r.known = *known
	}
	if r.pass.Gone && r.known.record != nil { // the cache lacks later writes to an object that is gone
		return
	}
	r.observe(r.pass.Object)
}

// observe takes over the record that an owner has. There may be a child that no cache shows at a place that this process did not enter:
// an earlier process made it, or a restored backup has brought it back.
func (r *ownerRecord) observe(owner *unstructured.Unstructured) {
	r.mu.Lock()
	before := r.known.record
	r.take(owner)
	now := r.known.record
	for place := range r.entering {
		r.entering[place] = r.entering[place] && (now == before || !now.Lists(place))
	}
	r.mu.Unlock()
	if r.pass.Gone || now == before {
		return
	}
	r.reportLost(before.Without(now.Places()...))
	var known []ownership.Place
	for _, place := range now.Places() {
		if there, _ := r.family.kinds.claimed(r.owner(), place); there || before.Lists(place) {
			known = append(known, place)
		}
	}
	r.unconfirmed.addAll(now.Without(known...))
}

// reportLost logs places that somebody else has taken out of the record. At the end of the reconcile, the log also names
// objects there with the label of a child.
func (r *ownerRecord) reportLost(lost *ownership.Record) {
	if lost.Empty() {
		return
	}
	r.pass.Sweep.Logged = false
	var names []string
	for _, place := range lost.Places() {
		names = append(names, place.People())
	}
	const mostNamed = 5
	r.pass.Logger.Log().Info("somebody has taken children out of the record of children; those that no handler makes again are left alone",
		logmark.Warning, true, "children", names[:min(len(names), mostNamed)], "more", max(0, len(names)-mostNamed))
}

// take is observe for the record alone. The lock is held.
func (r *ownerRecord) take(owner *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(owner.Object, "metadata", "annotations", r.family.names.keys.Record)
	switch {
	case r.known.next != "" && r.known.since != r.family.epoch(r.pass.Key): // what was taken out of the record may be there again
	case text == r.known.text:
		return
	case r.known.next != "" && text == r.known.next:
		r.known.text, r.known.next, r.known.alone = text, "", false
		return
	}
	before := r.known.record
	record, err := ownership.ParseRecord(text, r.pass.Object.GetUID())
	switch {
	case err != nil && record != nil:
		r.pass.Logger.Log().Error(err, "record of patched objects is not readable as a whole; what the rest of it names is left alone")
	case err != nil:
		r.pass.Logger.Log().Error(err, "record of children is not readable; it is begun again, and children and patched objects that only the record names are left alone")
	}
	r.known = knownRecord{record: record, text: text, closed: r.known.closed && record != nil}
	r.retain(before.Targets())
}

// retain enters the targets that are known into a record that somebody has overwritten, as by an older export. Children of such a record
// are found by their marks, and targets have none. The lock is held.
func (r *ownerRecord) retain(targets []ownership.Target) {
	record := r.known.record
	for _, t := range targets {
		if !record.ListsTarget(t) {
			record = record.WithTarget(time.Now(), t)
		}
	}
	if record == r.known.record {
		return
	}
	text, err := record.Encode(r.pass.Object.GetUID())
	if err != nil {
		r.pass.Logger.Log().Error(err, "record of children was overwritten, and cannot be written again")
		return
	}
	r.known.record, r.known.next, r.known.since, r.known.alone = record, text, r.family.epoch(r.pass.Key), true
}

// keep makes later reconciles know the record, also where this one fails. The lock is held.
func (r *ownerRecord) keep() {
	r.pass.Memory.record = nil
	if r.known.record != nil || r.known.text != "" { // one that cannot be read is not read again in each pass
		known := r.known
		r.pass.Memory.record = &known
	}
}

// wrote notes a write of the reconcile to its own object, which may have brought another record.
func (r *ownerRecord) wrote(result patch.Result) {
	r.journal.wroteOwner(result)
	if result.Status || result.Whole {
		r.answered(result.Object)
	}
}

// answered takes the record from the owner as the server returned it after a write of the reconcile.
func (r *ownerRecord) answered(owner *unstructured.Unstructured) {
	r.observe(owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass.Memory.unsure, r.lost = false, false
	r.keep()
	if !r.pass.Gone {
		r.family.records.set(r.pass.Key, r.known.record)
	}
}
