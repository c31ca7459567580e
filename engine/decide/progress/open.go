// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// vanished is the moment of a deletion that was not observed before the object was gone.
const vanished = "gone"

// Deletion returns the moment of an object's deletion, which identifies the deletion; empty while the object lives.
// A second delete request with a shorter grace period moves the timestamp by the difference of the periods, but not
// the moment, unless the timestamp would be in the past: then the moment is the present time (BeforeDelete in
// k8s.io/apiserver). Gone: the object is not in the cache any more.
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

// moves reports whether the moment of a known deletion has changed. A deletion cannot be undone, so an object that
// was being deleted still is the same deletion. An object that is only out of sight does not count.
func moves(known, now string) bool {
	return known != now && known != "" && known != vanished && now != "" && now != vanished
}

// Open opens an object's book: from this process's memory, or from the object if the process sees it for the first
// time. Look is at the object.
//
// Memory takes precedence over the object's text, whoever wrote it, because it has more. The exception is a text
// that was sent and whose response was lost.
func Open(rules *Rules, m *Memory, s Subject, look *Look, log Logger) *Ledger {
	l := &Ledger{rules: rules, memory: m, subject: s, log: log, text: s.Object.GetAnnotations()[rules.Annotation]}
	if m.rest == nil {
		m.rest = &rest{}
	}
	if m.sent != nil && m.sent.Text() == l.text {
		m.book, m.known, m.generation, m.sent = *m.sent, true, s.Generation, nil
		m.saved = m.book.saved(rules.Handlers)
	}
	if moves(m.deletion, s.Deletion) {
		m.book = m.book.Moved(m.deletion, s.Deletion)
	}
	m.deletion = s.Deletion
	switch {
	case !m.known:
		l.book = l.load(look)
		l.saved = l.book.saved(rules.Handlers)
	case m.generation != s.Generation:
		l.book = m.book // what others stored is not this book
	default:
		l.book, l.saved = m.book, m.saved
	}
	l.isNew = s.Fresh
	if rules.Stores {
		l.isNew = !l.book.Known
	}
	return l
}

// load reads the book from the object: its text, or status.observedGeneration if that is newer.
func (l *Ledger) load(look *Look) Book {
	b, err := Load(l.text, l.subject.Object.GetUID())
	if err != nil {
		l.log.Log().Error(err, "state annotation is not readable; the object is handled as a new one")
	}
	if observed := l.subject.Number.Handled(); observed > 0 && (b.Text() == "" || b.Passed(observed)) {
		return handledAt(observed, l.rules.Handlers, l.subject.Object, look)
	}
	b, err = b.Adapt(l.rules.Handlers, Moment{Look: look, Generation: l.subject.Object.GetGeneration(), Partial: l.rules.Partial})
	if err != nil {
		l.lost(err)
	}
	return b
}

// lost reports once that the old state cannot be read. That handlers have handled it is still known.
func (l *Ledger) lost(err error) {
	if l.memory.lost {
		return
	}
	l.memory.lost = true
	l.log.Log().Error(err, "what handlers saw last could not be read; they get no old and diff for the next change")
}

// handledAt returns the book of an object whose status.observedGeneration is the handled generation.
func handledAt(observed int64, handlers []Handler, o *unstructured.Unstructured, look *Look) Book {
	b := Book{UID: o.GetUID(), Known: true}
	for _, h := range handlers {
		e := Entry{}
		if h.Stores() {
			e = Observed(h, look, observed, o.GetGeneration())
		}
		b = b.With(h.ID, e)
	}
	return b
}

// HasMarker reports whether status.observedGeneration is an operator's mark on this object, by managedFields. The
// operator may keep its mark elsewhere now. Markers are the prefixes of its field managers for marks; see
// [patch.Marker].
func HasMarker(o *unstructured.Unstructured, markers []string) bool {
	managers := make([]string, 0, len(markers))
	for _, marker := range markers {
		managers = append(managers, patch.MarkerOf(marker, o))
	}
	field, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "managedFields")
	entries, _ := field.([]any)
	return slices.ContainsFunc(entries, func(item any) bool {
		e, _ := item.(map[string]any)
		manager, _ := e["manager"].(string)
		subresource, _ := e["subresource"].(string)
		fields, _ := e["fieldsV1"].(map[string]any)
		_, found := dsl.Path{"f:status", "f:observedGeneration"}.In(fields)
		return found && subresource == "status" && slices.Contains(managers, manager)
	})
}
