// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// vanished is the moment of a deletion that was not observed before the object was gone.
const vanished = "gone"

// Deletion returns the moment of an object's deletion, which identifies the deletion; empty if it is not being deleted.
// A second delete request with a shorter grace period moves the timestamp by the difference of the periods, but not the
// moment. If the timestamp would be in the past, the moment is the present time (BeforeDelete in k8s.io/apiserver).
// Gone: the object is not in the cache.
func Deletion(o *unstructured.Unstructured, gone bool) string {
	switch at := o.GetDeletionTimestamp(); {
	case at != nil:
		var grace int64
		if seconds := o.GetDeletionGracePeriodSeconds(); seconds != nil {
			grace = *seconds
		}
		return at.Add(-time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
	case gone:
		return vanished
	}
	return ""
}

// HasBegunDeletion reports whether the stored progress of an object says that a delete handler has begun.
func HasBegunDeletion(text string, uid types.UID) bool {
	b, err := Load(text, uid)
	if err != nil {
		return false
	}
	for _, e := range b.All() {
		if e.Try.Cause == dsl.Delete {
			return true
		}
	}
	return false
}

// moves reports whether the moment of a known deletion has changed. A deletion cannot be undone, so it is still the same
// deletion. An object that the cache does not show does not count.
func moves(known, now string) bool {
	return known != now && known != "" && known != vanished && now != "" && now != vanished
}

// Open opens an object's progress: from this process's memory, or from the object if the process sees it for the first
// time. Snapshot is of the object.
//
// Memory takes precedence over the object's text, whoever wrote it, because it has more. The exception is a text
// that was sent and whose response was lost.
func Open(rules *Rules, m *Memory, s Subject, snapshot *Snapshot, log Logger) *Session {
	l := &Session{rules: rules, memory: m, subject: s, log: log, text: s.Object.GetAnnotations()[rules.Annotation]}
	if m.rest == nil {
		m.rest = &rest{}
	}
	if m.sent != nil && m.sent.Text() == l.text {
		m.book, m.known, m.sent = *m.sent, true, nil
		m.saved = m.book.saved(rules.Handlers)
	}
	if moves(m.deletion, s.Deletion) {
		m.book = m.book.Moved(m.deletion, s.Deletion)
	}
	m.deletion = s.Deletion
	if m.known {
		l.book, l.saved = m.book, m.saved
	} else {
		l.book = l.load(snapshot)
		l.saved = l.book.saved(rules.Handlers)
	}
	l.isNew = s.Fresh
	if rules.Stores {
		l.isNew = !l.book.Known
	}
	return l
}

// load reads the progress from the object's text.
func (l *Session) load(snapshot *Snapshot) Progress {
	b, err := Load(l.text, l.subject.Object.GetUID())
	if err != nil {
		l.log.Log().Error(err, "state annotation is not readable; the object is handled as a new one")
	}
	b, err = b.Adapt(l.rules.Handlers, Moment{Look: snapshot, Generation: l.subject.Object.GetGeneration(), Partial: l.rules.Partial})
	if err != nil {
		l.lost(err)
	}
	return b
}

// lost logs once that the old state cannot be read. It is still known that handlers have handled it.
func (l *Session) lost(err error) {
	if l.memory.lost {
		return
	}
	l.memory.lost = true
	l.log.Log().Error(err, "what handlers saw last could not be read; they get no old and diff for the next change")
}
