// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// ties is what this process knows of an owner's record from one pass to the next.
type ties struct {
	// record is the owner's, nil where there is none, and text the annotation as it is stored. What is no child any
	// more is taken out of the record at once, and written when there is something to write.
	record *ownership.Record
	text   string
	// next is the text of the record where that differs from the stored one, empty where it does not. Since is how often the API
	// server's versions had gone back then.
	next  string
	since uint64
	// closed: a pass was finished since there is a record, so what was there before is in it.
	closed bool
}

// readRecord reads the owner's record. One that cannot be read is none. There may be a child that no cache shows at a place that
// this process did not enter: an earlier process made it, or a restored backup has brought it back.
func (s *Session) readRecord() {
	if known := s.pass.Memory.ties; known != nil {
		s.ties = *known
	}
	before := s.record
	if s.pass.Gone && before != nil { // the cache lacks later writes to an object that is gone
		return
	}
	if s.takeLocked(s.pass.Object); s.pass.Gone || s.record == before {
		return
	}
	var known []ownership.Place
	for _, place := range s.record.Places() {
		if there, _ := s.family.claimed(s.owner(), place); there || before.Lists(place) {
			known = append(known, place)
		}
	}
	doubts := s.record.Without(known...)
	for _, place := range s.pass.Memory.doubts.Places() {
		doubts = doubts.With(s.pass.Now, map[ownership.Place]string{place: ""})
	}
	s.pass.Memory.doubts = some(doubts)
}

// takeLocked takes over the record that an owner has. The lock is held, or no other goroutine has the session yet.
func (s *Session) takeLocked(owner *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(owner.Object, "metadata", "annotations", s.family.keys.Record)
	switch {
	case s.next != "" && s.since != s.family.epoch(s.pass.Key): // what was taken out of the record may be there again
	case text == s.text:
		return
	case s.next != "" && text == s.next:
		s.text, s.next = text, ""
		return
	}
	record, err := ownership.ParseRecord(text, s.pass.Object.GetUID())
	if err != nil {
		s.pass.Asker.Log().Error(err, "record of children is not readable; it is begun again, and children that only the record names are left alone")
	}
	s.ties = ties{record: record, text: text, closed: s.closed && record != nil}
}

// keepLocked makes later passes know the record, also where this one fails. The lock is held.
func (s *Session) keepLocked() {
	s.pass.Memory.ties = nil
	if s.record != nil || s.text != "" { // one that cannot be read is not read again in each pass
		known := s.ties
		s.pass.Memory.ties = &known
	}
}

// answered takes the record from the owner as the server returned it after a write of the pass.
func (s *Session) answered(owner *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass.Memory.unsure, s.lost = false, false
	s.takeLocked(owner)
	s.keepLocked()
	if !s.pass.Gone {
		s.family.know(s.pass.Key, s.record)
	}
}

// admits says why a child cannot be entered, if so: something that this owner may not have is there.
func (w *wanted) admits(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	_, err := w.applier.Stale(w.object, live)
	return err
}

// enrol enters a child before it is applied.
func (s *Session) enrol(ctx context.Context, w *wanted, live *unstructured.Unstructured) error {
	place := w.place()
	if err := s.enter(ctx, map[ownership.Place]string{place: w.title}); err != nil {
		return err
	}
	w.applier.Owner = s.owner()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.applier.Vacant = live == nil && s.wanted[place]
	s.wanted[place] = false // one request, and it may be our own child that is there
	return nil
}

// enter writes places and which children are there into the owner's record, unless it has them. What was a child and
// is none any more is left out by the way. A server that refuses is asked once in a pass.
func (s *Session) enter(ctx context.Context, titles map[ownership.Place]string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.ensure(ctx); err != nil {
		return s.unentered(err)
	}
	s.mu.Lock()
	if s.wanted == nil {
		s.wanted = map[ownership.Place]bool{}
	}
	before, fault, missing := s.record, s.fault, false
	for place, title := range titles {
		s.wanted[place] = s.wanted[place] || !before.Lists(place)
		entered, told := before.Title(place)
		missing = missing || !told || entered != title
	}
	s.mu.Unlock()
	if !missing {
		return nil
	}
	if fault == nil && s.pass.Gone {
		fault = s.outOfSight(ctx)
	}
	if fault == nil {
		if _, err := s.findMost(ctx, mostLooks); err != nil {
			s.pass.Asker.Log().V(1).Info("child stays in the record", "reason", err.Error())
		}
		fault = s.writeRecord(ctx, before.With(time.Now(), titles).Without(s.outdated(before)...))
	}
	return s.unentered(fault)
}

// unentered wraps the reason why children could not be entered into the record; nil stays nil.
func (s *Session) unentered(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("entering children of %s %s into its record: %w", s.pass.Object.GetKind(), s.pass.Key, err)
}

// ensure reads the owner when an earlier pass got no answer to a write of the record: the cache may show the record before it.
func (s *Session) ensure(ctx context.Context) error {
	s.mu.Lock()
	unsure := s.pass.Memory.unsure && !s.pass.Gone
	s.mu.Unlock()
	if !unsure {
		return nil
	}
	if err := s.outOfSight(ctx); err != nil {
		return err
	}
	s.answered(s.Base())
	s.Await(s.Base())
	return nil
}

// outOfSight makes ready to write the record of an object that the cache does not show any more. It may be out of
// sight alone, and live: what is made to see it off is found again by the record then as it would be otherwise.
func (s *Session) outOfSight(ctx context.Context) error {
	live, err := s.family.settings.Host.Read(ctx, s.family.settings.Own.Resource().GVR, s.pass.Key)
	switch {
	case err != nil:
		return fmt.Errorf("reading it: %w", err)
	case live == nil || live.GetUID() != s.pass.Object.GetUID():
		return dsl.Permanent(errors.New("the owner is gone, so there is no record to enter it into")) // nobody would find it again
	}
	s.Rebase(live)
	return nil
}

// strike takes a place out of the record again, in which somebody else's object has turned up.
func (s *Session) strike(ctx context.Context, place ownership.Place) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	record := s.record.Without(place)
	delete(s.wanted, place)
	s.mu.Unlock()
	if err := s.writeRecord(ctx, record); err != nil {
		return fmt.Errorf("striking %s from the record of %s %s: %w", place, s.pass.Object.GetKind(), s.pass.Key, err)
	}
	return nil
}

// writeRecord makes a record the owner's. What the pass writes later goes to the owner as it is then.
func (s *Session) writeRecord(ctx context.Context, record *ownership.Record) error {
	text, err := record.Encode(s.pass.Object.GetUID())
	if err != nil {
		return err
	}
	key, base := s.family.keys.Record, s.Base()
	if over := len(text) - book.Room(base.GetAnnotations(), key); over > 0 {
		return dsl.Permanent(fmt.Errorf("its annotations would have %d bytes, and the API server takes %d: give one object fewer children that are labelled, or stay when it is deleted",
			book.MostOfAll+over, book.MostOfAll))
	}
	marks := s.holding()
	marks.Annotation, marks.State = key, text
	s.sending()
	result, err := patch.Write(ctx, s.target(base), func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	s.Wrote(result)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.fault = err
		return err
	}
	s.pass.Memory.unsure = false
	s.base, s.record, s.text, s.next = result.Object, record, text, ""
	s.keepLocked()
	s.family.know(s.pass.Key, record)
	return nil
}

// target returns the owner as a target of writes.
func (s *Session) target(base *unstructured.Unstructured) patch.Target {
	served := s.family.settings.Own.Resource()
	return patch.Target{
		Client: s.family.settings.Host.Client(served.GVR, s.pass.Key.Namespace), Object: base,
		Resource: served.GVR.GroupResource(), Manager: s.family.settings.Operator.Name,
	}
}

// sending notes that a write of the record is about to be sent: until it is answered it is not known which record the owner has.
func (s *Session) sending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass.Memory.unsure = true
}
