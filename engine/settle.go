// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/progress"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// inMemory is how soon a retry must be due for its progress not to be stored: a crash within this
// time costs an attempt, a request for each attempt would cost more.
const inMemory = 10 * time.Second

// tally sums up the jobs whose causes are stored.
type tally struct {
	// ran: some handler ran. open: some is not finished. held: some has failed for good and keeps
	// a deletion from going on. soon: every retry is due so soon that memory is enough.
	ran, open, held, soon bool
}

// settle turns outcomes into what is to be stored.
func (p *pass) settle() patch.Marks {
	p.absorb()
	t := p.tally()
	p.reconsider()
	marks := patch.Marks{Finalizer: p.r.engine.op.Finalizer(), State: p.text}
	switch {
	case p.gone:
		p.memory.parted = !t.open && !p.unsure
		marks.Remove = p.memory.parted && !t.held // see pass.letGo
	case p.facts.Deleting:
		p.held = p.unsure || t.held || p.heldBefore()
		marks.Remove = !t.open && !p.held
		p.memory.parted = marks.Remove
		if !marks.Remove && t.ran && (t.held || !t.soon) {
			p.store(&marks)
		}
	default:
		wants := p.wantsFinalizer()
		marks.Add, marks.Remove = wants && !p.finalizer(), !wants && p.finalizer()
		p.settleBase(t, &marks)
	}
	p.lament(&marks)
	return marks
}

// reconsider lets filters be asked once more when handlers have written children.
func (p *pass) reconsider() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.applied) > 0 {
		p.answers = nil
	}
}

// absorb takes this pass's own changes of the essence for what they are: no news for the handler
// that asked for them, nor for one that is to be tried again anyhow, but news for others that look
// at what was changed.
func (p *pass) absorb() {
	if len(p.patch.Object) == 0 || p.generation || p.facts.Deleting {
		return
	}
	for _, j := range p.jobs {
		asked := p.patch.Object
		if j.record.Done {
			asked = nil
			if j.wants != nil {
				asked = j.wants.Object
			}
		}
		after := cause.Essence(cause.Patched(p.object.Object, asked))
		j.record.View = cause.Digest(cause.View(after, j.handler.Field))
	}
	before := p.facts.Now
	p.essence = cause.Essence(cause.Patched(p.object.Object, p.patch.Object))
	p.facts.Now = cause.ViewsOf(p.essence, p.r.rules.views)
	p.behind = p.someBehind(before)
}

// someBehind reports whether a handler that is done has not seen what this pass itself changes.
// Before digests the object as it was read.
func (p *pass) someBehind(before cause.Views) bool {
	for _, h := range p.r.rules.handlers {
		view := h.Field.String()
		record := p.state.Records[h.ID]
		current := record.View == before[view]
		for _, j := range p.jobs {
			if j.handler == h && j.lasting {
				record, current = j.record, true
			}
		}
		if storing(h) && record.Done && current && record.View != p.facts.Now[view] {
			return true
		}
	}
	return false
}

func (p *pass) tally() tally {
	t := tally{soon: true}
	now := time.Now()
	for _, j := range p.jobs {
		if !j.lasting {
			p.settleArisen(j)
			continue
		}
		p.state.Records[j.handler.ID] = j.record
		t.ran = t.ran || j.ran
		t.open = t.open || !j.record.Done
		t.soon = t.soon && (j.record.Done || j.record.Waiting || j.record.Waits(now) <= inMemory)
		t.held = t.held || j.record.Failed && !j.handler.Release
	}
	t.open = t.open || p.behind
	return t
}

// settleBase stores progress, or when every handler with a stored cause is finished, the object as
// this pass saw it as the base, never what it became meanwhile.
func (p *pass) settleBase(t tally, marks *patch.Marks) {
	switch {
	case t.open:
		if !t.soon || t.ran && p.writesAnyhow() {
			p.store(marks)
		}
	case !p.r.rules.stores:
	case t.ran, p.unfinished(), !p.facts.Handled && p.storable():
		p.rebase()
		p.store(marks)
	}
}

// settleArisen notes the outcome of a job whose cause does not outlive the process.
func (p *pass) settleArisen(j *job) {
	p.records[j.handler.ID] = j.record
	if !j.record.Done {
		return
	}
	delete(p.pending, j.handler.ID)
	if !j.record.Failed && !j.handler.Level() {
		delete(p.records, j.handler.ID) // only a level-triggered handler is asked what it has seen
	}
}

// heldBefore reports whether a delete handler that is no job any more failed for good.
func (p *pass) heldBefore() bool {
	for _, h := range p.r.rules.handlers {
		record := p.state.Records[h.ID]
		if h.On(dsl.Delete) && !h.Release && record.Cause == dsl.Delete && record.Failed {
			return true
		}
	}
	return false
}

// writesAnyhow reports whether the object is written to in any case, so that progress may go
// along.
func (p *pass) writesAnyhow() bool { return len(p.patch.Object) > 0 }

// unfinished reports whether records are left of handlers that were done while others were not.
// When those others have nothing to do any more, what is left is a base.
func (p *pass) unfinished() bool {
	for _, record := range p.state.Records {
		if record.Done && !record.Failed {
			return true
		}
	}
	return false
}

// storable reports whether some handler that depends on a base sees the object. Without one, the
// object is left without a mark.
func (p *pass) storable() bool {
	for _, h := range p.r.rules.handlers {
		if storing(h) && p.matches(&job{handler: h, cause: dsl.Update}) {
			return true
		}
	}
	return false
}

// rebase makes the object as this pass saw it the base. Records of handlers that failed for good
// are kept for people to read.
func (p *pass) rebase() {
	failed := map[string]progress.Record{}
	for _, h := range p.r.rules.handlers {
		if record := p.state.Records[h.ID]; record.Failed {
			failed[h.ID] = record
		}
	}
	p.state = progress.State{Handled: true, Base: maps.Clone(p.facts.Now), Records: failed}
	switch {
	case p.generation:
		p.state = progress.State{Records: map[string]progress.Record{}}
		p.patch.SetStatus("observedGeneration", p.object.GetGeneration())
	case p.r.rules.essence:
		p.state.Old = p.comparable()
	}
}

// store puts the state into the marks.
func (p *pass) store(marks *patch.Marks) {
	marks.Annotation = p.r.engine.op.StateAnnotation()
	marks.State = ""
	lasting := p.state.Lasting()
	if lasting.Empty() {
		return
	}
	text, degraded, err := lasting.Encode()
	if err != nil {
		p.log().Error(err, "state could not be stored")
		marks.Annotation, marks.State = "", p.text
		return
	}
	if degraded {
		p.state.Old = nil
		p.log().Info("the essence is too large to be kept on the object; handlers get no old and diff for the next change")
	}
	marks.State = text
}

// remember keeps what the pass worked out, after its write.
func (p *pass) remember(marks patch.Marks) {
	m := p.memory
	m.holdState(p.state, marks.State)
	m.holdArisen(p.records, p.pending)
	m.failures = 0
	p.stands()
	p.closeRecord()
	if p.resync || !m.seen {
		m.resync = p.r.nextResync(p.now, !m.seen)
	}
	m.seen = true
	if m.kin = p.kin; m.kin != nil {
		m.version = p.object.GetResourceVersion()
	}
	p.rewind()
	if !m.resync.IsZero() {
		p.next = p.next.sooner(time.Until(m.resync), queue.Resync)
	}
	if len(p.awaits) == 0 {
		return
	}
	m.awaits = p.awaits
	if m.breaker.wrote(p.now, p.content) {
		p.r.rest(p.key, m.breaker.until)
		last := p.awaits[len(p.awaits)-1]
		p.log().Info("object loops: its passes write again and again; it rests", dsl.LogWarning, true,
			"until", m.breaker.until.Format(time.RFC3339), "written", last.feed.name.String()+" "+last.key.String())
		p.r.engine.events.warn(p.object, "breaker", "Looping", fmt.Sprintf(
			"Handlers change this object or its children again and again without coming to rest, last %s %s; it is looked at again in a minute", last.feed.name, last.key))
	} else {
		p.r.rest(p.key, time.Time{})
	}
}

// count tells the metrics about write requests.
func (r *resource) count(result patch.Result) {
	if result.Status {
		r.engine.metrics.Written(r.name, ops.Status)
	}
	if result.Whole {
		r.engine.metrics.Written(r.name, ops.Object)
	}
}

// rest notes until when the breaker holds the key; zero when it does not.
func (r *resource) rest(key cache.ObjectName, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until.IsZero() {
		delete(r.resting, key)
		return
	}
	r.resting[key] = until
}

// again puts back news that a pass took but could not deal with.
func (r *resource) again(key cache.ObjectName, n news) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entryLocked(key)
	e.child = e.child || n.child
	e.granted = append(e.granted, n.granted...)
	if n.related != nil {
		e.related = &relatedNews{all: true}
	}
}

// tree returns the object as it was last seen, metadata alone where no more is held.
func (r *resource) tree(o *watch.Object) *unstructured.Unstructured {
	if t := o.Tree(); t != nil {
		return t
	}
	served := r.own.resource()
	t := &unstructured.Unstructured{Object: map[string]any{}}
	t.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
	t.SetNamespace(o.GetNamespace())
	t.SetName(o.GetName())
	t.SetUID(o.GetUID())
	t.SetResourceVersion(o.GetResourceVersion())
	return t
}
