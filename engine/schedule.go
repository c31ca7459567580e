// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/timer"
)

// schedulePrefix begins the name under which a schedule rides the queue. No object's name has a
// slash.
const schedulePrefix = "schedule/"

// scheduleKey is the key of a handler that runs for the resource as a whole.
func scheduleKey(handler string) cache.ObjectName {
	return cache.ObjectName{Name: schedulePrefix + handler}
}

// scheduled returns the handler that the key is of, nil when it is an object's.
func (r *resource) scheduled(key cache.ObjectName) *book.Reader {
	id, is := strings.CutPrefix(key.Name, schedulePrefix)
	if !is {
		return nil
	}
	i := slices.IndexFunc(r.rules.schedules, func(h book.Reader) bool { return h.ID == id })
	if i < 0 {
		return nil
	}
	return &r.rules.schedules[i]
}

// wholePass runs a handler for the resource as a whole when its time has come. What it is
// remembered by lasts as long as the term, as that of objects does.
func (r *resource) wholePass(ctx context.Context, key cache.ObjectName, h book.Reader) (due, error) {
	t := r.box.Take(key)
	defer t.Close()
	if t.Memory == nil {
		t.Memory = newMemory("")
		t.Memory.ticks = []timer.Tick{timer.First(h.Timing, time.Now(), false)}
	}
	m := t.Memory
	t.Keep(m)
	if !r.caughtUp(ctx, m) {
		return due{}, park(t, m)
	}
	p := &pass{r: r, key: key, whole: true, memory: m, now: time.Now(), patch: dsl.NewPatch(), object: r.kindOnly()}
	p.current, p.sight, p.book = p.object, book.NewLook(p.object.Object), m.book
	p.begin()
	j := p.scheduled(h, len(t.Granted) > 0)
	if j != nil && r.own.Listed("") != nil {
		return due{}.sooner(unsureLook, queue.Due), nil // it would take those that are missing for gone
	}
	if j != nil {
		if err := p.attempt(ctx, j); err != nil {
			return due{}, err
		}
	}
	p.rememberWhole(h)
	t.Handled()
	return p.next, nil
}

// scheduled returns what the handler has to do, nil when its time has not come. One that is to be
// tried again is not run twice for what falls due meanwhile.
func (p *pass) scheduled(r book.Reader, granted bool) *job {
	e := p.entry(r)
	switch {
	case e.Try.Cause == "" || e.Try.Done:
		if !p.memory.ticks[0].Passed(p.now) {
			return nil
		}
		e = e.Wakes(dsl.Timer)
	case granted:
		e.Try.Due = time.Time{}
	}
	j := &job{reader: r, cause: dsl.Timer, entry: e.Begin(dsl.Timer, book.Facts{Now: p.sight.Digest(r.View)})}
	j.record = j.entry.Try
	p.put(r, j.entry)
	return j
}

// rememberWhole keeps what came of the pass, and makes the next one come in time.
func (p *pass) rememberWhole(h book.Reader) {
	m, now := p.memory, time.Now()
	m.book = p.book
	if m.ticks[0].Passed(p.now) {
		m.ticks[0] = m.ticks[0].Next(h.Timing, now)
	}
	if at := m.ticks[0].Due(); !at.IsZero() {
		p.next = p.next.sooner(at.Sub(now), queue.Due)
	}
}

// kindOnly is the object of a handler that has none.
func (r *resource) kindOnly() *unstructured.Unstructured {
	served := r.own.Resource()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
	return o
}

// asWhole makes a request one for the resource as a whole.
func (p *pass) asWhole(request *dsl.Request, s *fence.Span) {
	request.Objects, request.Related = p.r.objects(), p.r.related.None(errNoObject)
	request.Events = &logEvents{request: request, span: s}
}

// objects returns all objects of the resource as the cache has them, sorted.
func (r *resource) objects() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{}
	for _, o := range r.own.Objects("") {
		out = append(out, r.tree(o))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// logEvents is dsl.Events where there is no object that an Event could be about: it is logged.
type logEvents struct {
	request *dsl.Request
	span    *fence.Span
}

var _ dsl.Events = (*logEvents)(nil)

// Event logs what is reported.
func (t *logEvents) Event(kind dsl.EventType, reason, note string, args ...any) {
	if !t.span.Over() {
		t.request.Log.Info("handler reports", "type", string(kind), "reason", reason, "note", fmt.Sprintf(note, args...))
	}
}

// errNoObject is the error of what needs an object, in a handler that has none.
var errNoObject = errors.New("the handler runs for the resource as a whole, and not for one object")
