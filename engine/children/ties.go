// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// outdated returns the places of a record at which there is no child any more.
func (s *Session) outdated(record *ownership.Record) (out []ownership.Place) {
	if s.family.settled("") != nil {
		return nil
	}
	owner, parted := s.owner(), !s.pass.Deleting && slices.ContainsFunc(s.family.settings.Handlers, collision.Lasts)
	s.mu.Lock()
	defer s.mu.Unlock()
	doubts := s.pass.Memory.doubts
	var seen []ownership.Place
	for _, place := range record.Places() {
		there, known := s.family.claimed(owner, place)
		if there && doubts.Lists(place) {
			seen = append(seen, place)
		}
		_, wanted := s.wanted[place]
		if known && !there && !wanted && !doubts.Lists(place) && !s.cutLocked(owner, place) || parted && s.family.farewell(record, place) {
			out = append(out, place)
		}
	}
	if len(seen) > 0 {
		s.pass.Memory.doubts = some(doubts.Without(seen...))
	}
	return out
}

// claimed reports whether the object at a place says that it is the owner's, and whether that is known. A cache without an open
// watch shows which objects are there, and does not prove that one is absent.
func (f *Family) claimed(owner ownership.Owner, place ownership.Place) (there, known bool) {
	kind, h := f.shows(place)
	if h == nil || !h.Synced() {
		return false, false
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	o, found := h.Object(key)
	if !found && kind.Telling(key) {
		return false, false // the listeners find the owner by its record when the deletion reaches them
	}
	there = found && owner.Lists(o)
	return there, there || h.State().Stale.IsZero()
}

// cutLocked reports whether the object at a place was applied for the owner, and somebody has cut the tie since: the label may be
// put on again. An object that this pass has applied without a tie does not count. The lock is held.
func (s *Session) cutLocked(owner ownership.Owner, place ownership.Place) bool {
	kind, h := s.family.shows(place)
	if h == nil {
		return false
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	o, found := h.Object(key)
	return found && owner.Forgets(o) && s.applied[id{kind.Resource().GVR, key}] == nil
}

// shows returns the feed that has the objects of a place's kind, and the informer that has the place; nil where there is none.
func (f *Family) shows(place ownership.Place) (*feed.Feed, *watch.Handle) {
	for kind := range f.kinds {
		if kind.Resource().GroupKind() == place.Kind {
			return kind, kind.Informer(place.Namespace)
		}
	}
	return nil, nil
}

// farewell reports whether a handler that runs for deletions alone has made what is at a place. Of an object that
// lives that is of a departure that is over.
func (f *Family) farewell(record *ownership.Record, place ownership.Place) bool {
	title, _ := record.Title(place)
	spec, _ := ownership.ParseTitle(title)
	at := collision.HandlerOf(f.settings.Handlers, collision.Renamed(f.settings.Handlers, spec.Handler))
	return at >= 0 && collision.Lasts(f.settings.Handlers[at])
}

// copiedLocked reports whether the owner has no record of its own, and was given that of another object. A write without an answer
// may have put a record of its own there. The lock is held.
func (s *Session) copiedLocked() bool {
	if s.record != nil || s.text == "" || s.pass.Memory.unsure {
		return false
	}
	record, err := ownership.ParseRecord(s.text, s.pass.Object.GetUID())
	return record == nil && err == nil // one that cannot be read may be of a later version
}

// Trim takes what is no child any more out of the record. A record of another object goes. Trim returns the owner as it is now, and annotations that are to be written when the owner is, an empty one to be
// removed; nil for none.
func (s *Session) Trim() (base *unstructured.Unstructured, along map[string]patch.Note) {
	s.mu.Lock()
	before, base, copied, was := s.record, s.base, s.copiedLocked(), s.text
	s.mu.Unlock()
	switch {
	case s.pass.Deleting || before == nil && !copied:
		return base, nil
	case before == nil:
		return base, map[string]patch.Note{s.family.keys.Record: {Was: was}}
	}
	left := s.outdated(before)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(left) > 0 {
		record := before.Without(left...)
		text, err := record.Encode(s.pass.Object.GetUID())
		if err != nil {
			return base, nil // it was encoded before, and was longer
		}
		s.record, s.next, s.since = record, text, s.family.epoch(s.pass.Key)
		s.family.know(s.pass.Key, record)
	}
	if s.next == "" {
		return base, nil
	}
	s.pass.Memory.unsure = true
	return base, map[string]patch.Note{s.family.keys.Record: {Text: s.next}}
}

// LeftBehind takes what was made to see the owner off out of its record, and returns the annotation, nil where nothing
// was made: should the owner be back one day, and leave again, that is not to be taken for what is to be made then.
func (s *Session) LeftBehind(live *unstructured.Unstructured) map[string]patch.Note {
	key := s.family.keys.Record
	record, err := ownership.ParseRecord(live.GetAnnotations()[key], live.GetUID())
	if err != nil {
		return nil // it was said when it was read
	}
	made := slices.DeleteFunc(record.Places(), func(place ownership.Place) bool { return !s.family.farewell(record, place) })
	if len(made) == 0 {
		return nil
	}
	text, err := record.Without(made...).Encode(live.GetUID())
	if err != nil {
		return nil // it was encoded before, and was longer
	}
	return map[string]patch.Note{key: {Text: text}}
}

// Close remembers the record when the pass has written. When every handler is done, what was there before the record
// is in it, and what passes for a child all the same is told, once in the life of a process.
func (s *Session) Close(done bool) {
	s.mu.Lock()
	s.pass.Memory.unsure = s.lost // what this pass has sent was answered
	s.closed = s.record != nil && (s.closed || done)
	s.keepLocked()
	s.mu.Unlock()
	if done && !s.pass.Gone && (!s.pass.Sweep.Told || s.pass.Deleting) {
		s.pass.Sweep.Told = true
		s.tell()
	}
}

// unlisted names the objects that pass for children of the owner, sorted.
func (s *Session) unlisted() (names []string) {
	owner := s.owner()
	for kind := range s.family.kinds {
		for _, mark := range owner.Marks() {
			for _, o := range kind.OwnedBy(mark) {
				if tree := o.Tree(); tree != nil && owner.Unlisted(tree) {
					names = append(names, ownership.PlaceOf(tree).String())
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// tell tells of the objects that pass for children of the owner, and are left alone. When it is being
// deleted nobody will look for them again, so people are told, too.
func (s *Session) tell() {
	names := s.unlisted()
	if len(names) == 0 {
		return
	}
	const mostNamed = 5
	named := strings.Join(names[:min(len(names), mostNamed)], " ")
	if s.pass.Deleting {
		s.family.settings.Events.Warn(s.pass.Object, "leave", "ChildrenLeft", fmt.Sprintf("%d objects say that they are children of this one, which has no record of them. They are left: %s",
			len(names), named))
	}
	s.pass.Asker.Log().Info("objects say that they are children of this one and are not in its record of children; they are left alone", logmark.Warning, true,
		"objects", named, "more", max(0, len(names)-mostNamed))
}
