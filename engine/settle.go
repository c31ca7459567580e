// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/pack"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// inMemory is how long an outcome or a retry is kept in memory alone: a crash within this time costs an
// attempt, a request for each attempt would cost more.
const inMemory = 10 * time.Second

// finish enters the outcome of a job into the book. Its handler has seen the object as it was before it
// ran, and what it changes itself is no news for it; for others that look there it is.
func (p *pass) finish(j *job) {
	j.left = p.sight.Digest(j.reader.View)
	var kept map[string]any
	if j.reader.Old {
		kept = p.sight.Kept(j.reader.View)
	}
	e := j.entry
	e.Try = j.record
	p.put(j.reader, e.End(j.reader.View, j.left, kept))
	if !j.record.Done || j.record.Failed {
		return
	}
	for _, r := range p.r.rules.readers {
		if e := p.entry(r); e.Lost != "" && slices.Contains(r.After, j.reader.ID) {
			p.put(r, e.Again())
		}
	}
}

// tally sums up what handlers are still to do.
type tally struct {
	// open: some handler that is to see the object off is not finished. held: some has failed for good and
	// keeps a deletion from going on.
	open, held bool
	// retries: some try is to be made again. again is when the latest of those is that were made in this pass.
	retries bool
	again   time.Time
}

func (p *pass) tally() (t tally) {
	for _, j := range p.jobs {
		t.open = t.open || (j.cause == dsl.Delete || p.gone && j.cause == dsl.Event) && !j.record.Done
		if !j.retries() {
			continue
		}
		t.retries = true
		if j.ran && !j.record.Waiting && j.record.Due.After(t.again) {
			t.again = j.record.Due
		}
	}
	t.held = slices.ContainsFunc(p.r.rules.readers, p.holdsUp)
	return t
}

// holdsUp reports whether a handler that has failed for good keeps a deletion from going on.
func (p *pass) holdsUp(r book.Reader) bool {
	e := p.entry(r)
	return r.On(dsl.Delete) && !r.Release && e.Parted(p.deletion) && e.Try.Failed && p.answer(&job{reader: r, cause: dsl.Delete}).keeps()
}

// retries reports whether the job is to be tried again for what is stored.
func (j *job) retries() bool {
	if j.record.Done || !j.ran && j.record.Attempts == 0 && !j.record.Waiting {
		return false
	}
	return j.cause == dsl.Delete || j.reader.Stores() && j.cause.Lasting()
}

// settle turns outcomes into what is to be stored.
func (p *pass) settle() patch.Marks {
	t := p.tally()
	p.reconsider()
	marks := patch.Marks{Finalizer: p.r.engine.op.Finalizer(), State: p.text}
	switch {
	case p.gone:
		p.memory.parted = !t.open && !p.unsure
		marks.Remove = p.memory.parted && !t.held // see pass.letGo
	case p.deletion != "":
		p.held = p.unsure || t.held
		marks.Remove = !t.open && !p.held
		p.memory.parted = marks.Remove
		if !marks.Remove {
			p.settleBook(t, &marks)
		}
	default:
		wants := p.wantsFinalizer()
		marks.Add, marks.Remove = wants && !p.finalizer(), !wants && p.finalizer()
		p.stir()
		if p.behind = p.lags(); p.behind {
			p.next = p.next.atOnce()
		}
		p.settleBook(t, &marks)
	}
	p.sayFailing(&marks)
	return marks
}

// stir makes the next pass run handlers for children that others have written in this one, after them.
func (p *pass) stir() {
	p.stirred = nil
	for _, w := range p.family.Writes() {
		for _, r := range p.r.rules.readers {
			if !w.Child || r.ID == w.Handler || !r.On(dsl.Child) || p.ranSince(r, w.Turn) || slices.Contains(p.stirred, r.ID) {
				continue
			}
			p.stirred = append(p.stirred, r.ID)
			p.next = p.next.atOnce()
		}
	}
}

// ranSince reports whether a handler ran in this pass when there were that many jobs, or later.
func (p *pass) ranSince(r book.Reader, jobs int) bool {
	return slices.ContainsFunc(p.jobs[min(jobs, len(p.jobs)):], func(j *job) bool { return j.reader.Handler == r.Handler && j.ran })
}

// reconsider lets filters be asked once more when handlers have written children.
func (p *pass) reconsider() {
	if p.family.Applied() {
		p.answers = nil
	}
}

// settleBook stores the book when something in it is not stored, unless that may well be over soon.
func (p *pass) settleBook(t tally, marks *patch.Marks) {
	p.marked = p.stored
	mark := p.book.Mark(p.r.rules.readers)
	if p.generation && p.deletion == "" && p.allSeen() {
		p.marked, marks.Observed = mark, p.object.GetGeneration()
		if p.text != "" {
			marks.Annotation, marks.State = p.r.engine.op.StateAnnotation(), ""
		}
		return
	}
	if mark == p.stored && p.intact() {
		p.memory.unsaved = time.Time{}
		return
	}
	if p.postponed(t, marks) {
		return
	}
	if p.store(marks) {
		p.marked = mark
	}
}

// postponed reports whether what is not stored waits for what is still to come. A retry that is due soon
// is not worth a request, and neither is a success beside it; but a success, or that a handler has begun
// with something, is not kept in memory alone for longer than a crash may cost.
func (p *pass) postponed(t tally, marks *patch.Marks) bool {
	if !t.retries || len(p.patch.Object) > 0 || marks.Add || time.Until(t.again) > inMemory {
		return false
	}
	if p.book.Outcomes(p.r.rules.readers) == p.outcomes {
		return true
	}
	if p.memory.unsaved.IsZero() {
		p.memory.unsaved = p.now
	}
	left := p.memory.unsaved.Add(inMemory).Sub(p.now)
	if left <= 0 {
		return false
	}
	p.next = p.next.sooner(left, queue.Due)
	return true
}

// allSeen reports whether every handler of which that is kept has handled the object as it is.
func (p *pass) allSeen() bool {
	some := false
	for _, r := range p.r.rules.readers {
		if !r.Stores() {
			continue
		}
		e := p.entry(r)
		if e.Seen != p.sight.Digest(r.View) {
			return false
		}
		some = true
	}
	return some
}

// store puts the book into the marks, and reports whether it could.
func (p *pass) store(marks *patch.Marks) bool {
	key := p.r.engine.op.StateAnnotation()
	p.book.Generation = p.foreseen()
	text, degraded, err := p.book.Encode(p.r.rules.readers, p.sight, pack.Room(p.object.GetAnnotations(), key))
	switch {
	case errors.Is(err, book.ErrRoom):
		p.log().Error(err, "state could not be stored; what handlers have handled is known to this process alone")
		return false
	case err != nil:
		p.log().Error(err, "state could not be stored")
		return false
	case degraded:
		p.log().Info("the essence is too large to be kept on the object; handlers get no old and diff for the next change", dsl.LogWarning, true)
	}
	marks.Annotation, marks.State, marks.Locked = key, text, p.memory.stamped
	return true
}

// foreseen is the generation that the object has once this pass has written it.
func (p *pass) foreseen() int64 {
	now := p.object.GetGeneration()
	for key := range p.patch.Object {
		if now > 0 && key != "metadata" {
			return now + 1
		}
	}
	return now
}

// keepBook remembers the book.
func (p *pass) keepBook(marks patch.Marks) {
	m := p.memory
	if marks.Annotation == p.r.engine.op.StateAnnotation() {
		if p.text != "" && p.text != p.book.Text() {
			m.foreign = p.text
		}
		p.book = p.book.Stored(marks.State)
	}
	if p.marked != p.stored {
		p.outcomes, m.unsaved = p.book.Outcomes(p.r.rules.readers), time.Time{}
	}
	m.book, m.known, m.mark, m.outcomes, m.generation, m.sent = p.book, true, p.marked, p.outcomes, p.generation, nil
	m.stirred = p.stirred
}

// remember keeps what the pass worked out, after its write.
func (p *pass) remember(marks patch.Marks) {
	m := p.memory
	p.keepBook(marks)
	p.stands()
	p.family.Close(!slices.ContainsFunc(p.jobs, func(j *job) bool { return !j.record.Done || j.record.Failed }))
	if p.resync || !m.seen {
		m.resync = p.r.nextResync(p.now, !m.seen)
	}
	m.seen = true
	if p.relatedReaderWrote() {
		p.related.Foresee(func() *unstructured.Unstructured { return p.laid(p.object, p.patch) })
	}
	m.related = p.related.State()
	p.rescheduleTimers()
	if !m.resync.IsZero() {
		p.next = p.next.sooner(time.Until(m.resync), queue.Resync)
	}
	p.brake()
}

// relatedReaderWrote reports whether the only handler that runs for related objects is the only one that has changed
// the object. What others have changed is news to it.
func (p *pass) relatedReaderWrote() bool {
	var writers []*dsl.Handler
	for _, j := range p.jobs {
		if j.asks() {
			writers = append(writers, j.reader.Handler)
		}
	}
	return len(writers) == 1 && slices.Equal(writers, p.r.rules.relates)
}

// tree returns the object as it was last seen, metadata alone where no more is held.
func (r *resource) tree(o *cached.Object) *unstructured.Unstructured {
	if t := o.Tree(); t != nil {
		return t
	}
	served := r.own.Resource()
	t := &unstructured.Unstructured{Object: map[string]any{}}
	t.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
	t.SetNamespace(o.GetNamespace())
	t.SetName(o.GetName())
	t.SetUID(o.GetUID())
	t.SetResourceVersion(o.GetResourceVersion())
	return t
}
