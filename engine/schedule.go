// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// schedulePrefix begins the name under which a schedule rides the queue. No object's name has a slash.
const schedulePrefix = "schedule/"

// scheduleKey is the key of a handler that runs for the resource as a whole.
func scheduleKey(handler string) cache.ObjectName {
	return cache.ObjectName{Name: schedulePrefix + handler}
}

// scheduleOf returns the handler that the key is of, nil when it is an object's.
func (r *resource) scheduleOf(key cache.ObjectName) *book.Reader {
	id, is := strings.CutPrefix(key.Name, schedulePrefix)
	i := slices.IndexFunc(r.rules.Schedules.Readers, func(h book.Reader) bool { return is && h.ID == id })
	if i < 0 {
		return nil
	}
	return &r.rules.Schedules.Readers[i]
}

// resourcePass runs a handler for the resource as a whole when its time has come. What it is
// remembered by lasts as long as the term, as that of objects does.
func (r *resource) resourcePass(ctx context.Context, key cache.ObjectName, h book.Reader) (queue.Next, error) {
	t := r.box.Take(key)
	defer t.Close()
	if t.Memory == nil {
		t.Memory = pass.NewMemory("")
		t.Memory.Ticks = []pass.Tick{pass.FirstTickOf(h.Handler, time.Now(), false, nil)}
	}
	m := t.Memory.Wake()
	t.Keep(m)
	if !m.CaughtUp(ctx, r.engine.reader) {
		return queue.Next{}, pass.Park(t, m)
	}
	p := r.newPass(facts{key: key, object: r.own.Blank(), now: time.Now()}, m, inbox.Changes{})
	j := p.scheduled(h, len(t.Granted) > 0)
	if j != nil {
		if r.own.Listed("") != nil {
			return queue.Next{}.Sooner(unsureLook, queue.Due), nil // it would take those that are missing for gone
		}
		if err := p.attempt(ctx, j); err != nil {
			return queue.Next{}, err
		}
	}
	p.ledger.Abandon() // nothing of it is stored
	if j != nil {
		p.jobs = pass.Jobs{j}
	}
	r.box.Finished(key, ops.Stand{Open: p.stand(p.jobs, []book.Reader{h}, false).Open}) // there is no object to be counted
	p.wind()
	if j != nil && j.Ran && j.Record.Done {
		m.Ticks[0] = pass.TickAfter(m.Ticks[0], h.Timing, p.now, time.Now())
	} else if m.Ticks[0].Passed(p.now) {
		m.Ticks[0] = m.Ticks[0].Next(h.Timing, time.Now())
	}
	if at := m.Ticks[0].Due(); !at.IsZero() {
		p.next = p.next.Sooner(time.Until(at), queue.Due)
	}
	t.Handled()
	return p.next, nil
}

// scheduled returns what the handler has to do, nil when its time has not come. One that is to be
// tried again is not run twice for what falls due meanwhile.
func (p *run) scheduled(r book.Reader, granted bool) *pass.Job {
	e := p.ledger.Entry(r)
	switch {
	case e.Try.Cause == "" || e.Try.Done:
		if p.memory.Ticks[0].Passed(p.now) {
			e = e.Wakes(dsl.Timer)
		} else if p.memory.Again.Passed(p.now) {
			e = e.Wakes(dsl.Again)
		} else {
			return nil
		}
	case granted:
		e.Try.Due = time.Time{}
	}
	j := pass.Begin(r, e.Try.Cause, e, p.ledger.Facts(r, p.Look))
	p.ledger.Put(r, j.Entry)
	return j
}

// withoutObject makes a request one for the resource as a whole.
func (r *resource) withoutObject(request *dsl.Request, s *transport.Span) {
	request.Objects, request.Related = r.objects(), r.related.None(errNoObject)
	request.Events = events.Log{Log: request.Log, Over: s.Over}
}

// objects returns all objects of the resource as the cache has them, sorted.
func (r *resource) objects() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{}
	for _, o := range r.own.Objects("") {
		if r.isKey(o.GetNamespace(), o.GetName()) {
			continue
		}
		out = append(out, r.own.Tree(o))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// errNoObject is the error of what needs an object, in a handler that has none.
var errNoObject = errors.New("the handler runs for the resource as a whole, and not for one object")
