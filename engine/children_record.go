// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// errOwnerGone says that a child with a label cannot be made: nobody would find it again.
var errOwnerGone = errors.New("the owner is gone, so there is no record to enter it into")

// ties is what this process knows of an owner's labelled children from one pass to the next.
type ties struct {
	// record is the owner's, text the annotation as it is stored. What is no child any more is taken
	// out of the record at once, and written when there is something to write.
	record *child.Record
	text   string
	// ahead: the record is ahead of the text.
	ahead bool
	// closed: a pass was finished since there is a record, so what was there before is in it.
	closed bool
	// doubts are places where a child may have been made although the request failed. They stay in
	// the record until the child is seen, or the process ends.
	doubts map[child.Place]bool
}

// enrolment is a pass's work on the owner's record.
type enrolment struct {
	// turn is held while the record is written.
	turn sync.Mutex
	// What follows is guarded by the pass's lock. base is the owner as the pass has written it so
	// far: what is written later is worked out from that.
	base *unstructured.Unstructured
	ties
	// wanted are the places of labelled children in this pass; true while nothing was known to be
	// there when the place was entered.
	wanted map[child.Place]bool
	// fault is why the server did not take the record.
	fault error
}

// begin reads the owner's record. One that cannot be read is none.
func (e *enrolment) begin(p *pass) {
	e.base, e.wanted = p.object, map[child.Place]bool{}
	if p.memory.ties != nil {
		e.ties = *p.memory.ties
	}
	text := p.object.GetAnnotations()[p.r.engine.op.ChildrenAnnotation()]
	if text == e.text || p.gone && p.memory.ties != nil { // of what is gone the cache does not have what was written since
		return
	}
	record, err := child.ParseRecord(text, p.object.GetUID())
	if err != nil {
		p.log().Error(err, "record of children is not readable; it is begun anew")
	}
	e.record, e.text, e.ahead, e.closed = record, text, false, e.closed && record != nil
}

// tie lets events of labelled children find the object.
func (p *pass) tie() {
	if !p.gone {
		p.r.records.put(p.key, p.ties.record)
	}
}

// records list the labelled children of a resource's objects, for events to find the owners by. Its zero value has
// none.
type records struct {
	mu sync.Mutex
	of map[cache.ObjectName]*child.Record
}

// put notes an owner's record; nil when it has none.
func (r *records) put(owner cache.ObjectName, record *child.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record == nil {
		delete(r.of, owner)
		return
	}
	if r.of == nil {
		r.of = map[cache.ObjectName]*child.Record{}
	}
	r.of[owner] = record
}

// clear forgets all.
func (r *records) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = nil
}

// has reports whether the record of an object has a place.
func (r *records) has(owner cache.ObjectName, place child.Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[owner].Lists(place)
}

// placeIn is the place of an object of a feed.
func placeIn(f *feed.Feed, key cache.ObjectName) child.Place {
	served := f.Resource()
	out := child.Place{Namespace: key.Namespace, Name: key.Name}
	out.Kind.Group, out.Kind.Kind = served.GVR.Group, served.Kind
	return out
}

// place is where a wanted child is.
func (w *wanted) place() child.Place { return child.PlaceOf(w.object) }

// Enter enters children that are about to be applied, those that have to be.
func (c *children) Enter(ctx context.Context, all ...dsl.DesiredChild) error {
	ctx, done, err := c.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	titles := map[child.Place]string{}
	for _, each := range all {
		if !each.ByLabel() && c.pass.r.own.Resource().Namespaced {
			continue
		}
		w, err := c.want(ctx, each.Object, each.ChildSpec)
		if err == nil && w.enters && c.pass.admits(w, c.pass.known(w)) == nil {
			titles[w.place()] = child.Which(w.spec)
		}
	}
	return c.pass.enter(ctx, titles)
}

// admits says why a child cannot be entered, if so: something that this owner may not have is there.
func (p *pass) admits(w *wanted, live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	_, err := w.applier.Stale(w.object, live)
	return err
}

// enrol enters a labelled child before it is applied.
func (p *pass) enrol(ctx context.Context, w *wanted, live *unstructured.Unstructured) error {
	if err := p.admits(w, live); err != nil {
		return err
	}
	place := w.place()
	if err := p.enter(ctx, map[child.Place]string{place: child.Which(w.spec)}); err != nil {
		return err
	}
	w.applier.Owner = p.owner()
	p.mu.Lock()
	defer p.mu.Unlock()
	w.applier.Vacant = live == nil && p.ties.wanted[place]
	p.ties.wanted[place] = false // one request, and it may be our own child that is there
	return nil
}

// enter writes places and which children are there into the owner's record, unless it has them. What was a child and is none any
// more is left out by the way. A server that refuses is asked once in a pass.
func (p *pass) enter(ctx context.Context, titles map[child.Place]string) error {
	p.ties.turn.Lock()
	defer p.ties.turn.Unlock()
	p.mu.Lock()
	before, fault := p.ties.record, p.ties.fault
	var missing []child.Place
	for place, title := range titles {
		p.ties.wanted[place] = p.ties.wanted[place] || !before.Lists(place)
		if entered, told := before.Title(place); !told || entered != title {
			missing = append(missing, place)
		}
	}
	p.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	if fault == nil && p.gone {
		fault = p.outOfSight(ctx)
	}
	if fault == nil {
		fault = p.writeRecord(ctx, before.With(time.Now(), missing...).Titled(titles).Without(p.outdated(before)...))
	}
	if fault != nil {
		return fmt.Errorf("entering children of %s %s into its record: %w", p.object.GetKind(), p.key, fault)
	}
	return nil
}

// strike takes a place out of the record again, in which somebody else's object has turned up.
func (p *pass) strike(ctx context.Context, place child.Place) error {
	p.ties.turn.Lock()
	defer p.ties.turn.Unlock()
	p.mu.Lock()
	record := p.ties.record.Without(place)
	delete(p.ties.wanted, place)
	p.mu.Unlock()
	if err := p.writeRecord(ctx, record); err != nil {
		return fmt.Errorf("striking %s from the record of %s %s: %w", place, p.object.GetKind(), p.key, err)
	}
	return nil
}

// writeRecord makes a record the owner's. What the pass writes later goes to the owner as it is then.
func (p *pass) writeRecord(ctx context.Context, record *child.Record) error {
	key := p.r.engine.op.ChildrenAnnotation()
	text, err := record.Encode(p.object.GetUID())
	if err != nil {
		return err
	}
	p.mu.Lock()
	base := p.ties.base
	p.mu.Unlock()
	if size := annotated(base, key) + len(key) + len(text); size > annotationsMost {
		return dsl.Permanent(fmt.Errorf("its annotations would have %d bytes, and the API server takes %d: give one object fewer labelled children",
			size, annotationsMost))
	}
	served := p.r.own.Resource()
	target := patch.Target{
		Client: p.r.engine.writer(served.GVR, p.key.Namespace), Object: base,
		Resource: served.GVR.GroupResource(), Manager: p.r.engine.op.Name,
	}
	marks := patch.Marks{Annotation: key, State: text}
	result, err := patch.Write(ctx, target, func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	p.r.count(result)
	if result.Whole {
		p.await(p.r.own, result.Object)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.ties.fault = err
		return err
	}
	p.ties.base, p.ties.record, p.ties.text, p.ties.ahead = result.Object, record, text, false
	p.r.records.put(p.key, record)
	return nil
}

// annotated is the size of an object's annotations but one, as the API server counts it.
func annotated(o *unstructured.Unstructured, but string) (size int) {
	for key, value := range o.GetAnnotations() {
		if key != but {
			size += len(key) + len(value)
		}
	}
	return size
}

// doubt notes that a labelled child may have been made, or not.
func (p *pass) doubt(place child.Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ties.doubts == nil {
		p.ties.doubts = map[child.Place]bool{}
	}
	p.ties.doubts[place] = true
	if p.memory.ties == nil {
		p.memory.ties = &ties{}
	}
	p.memory.ties.doubts = p.ties.doubts // also when the pass fails
}
