// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

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
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// schedulePrefix begins the name under which a schedule rides the queue. No object's name has a slash.
const schedulePrefix = "schedule/"

// ScheduleKey is the key of a handler that runs for the resource as a whole.
func ScheduleKey(handler string) cache.ObjectName {
	return cache.ObjectName{Name: schedulePrefix + handler}
}

// IsSchedule reports whether a key is that of a handler that runs for the resource as a whole.
func IsSchedule(key cache.ObjectName) bool { return strings.HasPrefix(key.Name, schedulePrefix) }

// scheduleOf returns the handler that the key is of, nil when it is an object's.
func (s *Controller) scheduleOf(key cache.ObjectName) *progress.Handler {
	id, is := strings.CutPrefix(key.Name, schedulePrefix)
	i := slices.IndexFunc(s.Rules.Schedules.Handlers, func(h progress.Handler) bool { return is && h.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Rules.Schedules.Handlers[i]
}

// FailingSchedules returns the schedules that fail, by their ids.
func (s *Controller) FailingSchedules() map[string]ops.Stander {
	out := map[string]ops.Stander{}
	for key, failing := range s.Inbox.Failing() {
		if h := s.scheduleOf(key); h != nil {
			out[h.ID] = failing
		}
	}
	return out
}

// runSchedule runs a handler for the resource as a whole when its time has come. The key that
// remembers it lasts as long as the term, as that of objects does.
func (s *Controller) runSchedule(ctx context.Context, key cache.ObjectName, h progress.Handler) (queue.Next, error) {
	t := s.Inbox.Take(key)
	defer t.Close()
	if t.Memory == nil {
		t.Memory = newMemory("")
		t.Memory.Ticks = []Tick{firstTickOf(h.Handler, time.Now(), false, nil)}
	}
	m := t.Memory.Wake()
	t.Keep(m)
	if !m.CaughtUp(ctx, s.Host.Read) {
		return queue.Next{}, Park(t, m)
	}
	p := s.open(Input{Key: key, Object: s.Own.Blank(), Now: time.Now()}, m)
	st := p.opening
	j := p.scheduled(h, len(t.Granted) > 0)
	if j != nil {
		if s.Own.Listed("") != nil {
			return queue.Next{}.Sooner(unsureLook, queue.Due), nil // it would take those that are missing for gone
		}
		st.Jobs = Attempts{j}
		var err error
		if st, err = p.attempt(ctx, st, j); err != nil {
			return queue.Next{}, err
		}
	}
	p.ledger.Abandon() // nothing of it is stored
	st = p.windSchedule(p.alarm(st), h, j)
	out := p.result(st, nil)
	out.Stand, out.Stands = ops.Stand{Open: p.stand(st, []progress.Handler{h}, false).Open}, true // there is no object to be counted
	return p.finish(t, out)
}

// windSchedule sets when the handler runs next.
func (p *run) windSchedule(st State, h progress.Handler, j *Attempt) State {
	ticks := p.memory.Ticks
	if j != nil && j.Ran && j.Record.Done {
		ticks[0] = tickAfter(ticks[0], h.Timing, p.Now, time.Now())
	} else if ticks[0].Passed(p.Now) {
		ticks[0] = ticks[0].Next(h.Timing, time.Now())
	}
	if at := ticks[0].Due(); !at.IsZero() {
		st.Due = st.Due.Sooner(time.Until(at), queue.Due)
	}
	return st
}

// scheduled returns what the handler has to do, nil when its time has not come. One that is to be
// tried again is not run twice for what falls due meanwhile.
func (p *run) scheduled(r progress.Handler, granted bool) *Attempt {
	e := p.ledger.Entry(r)
	switch {
	case e.Try.Cause == "" || e.Try.Done:
		if p.memory.Ticks[0].Passed(p.Now) {
			e = e.WakeFor(dsl.Timer)
		} else if p.memory.Again.Passed(p.Now) {
			e = e.WakeFor(dsl.Again)
		} else {
			return nil
		}
	case granted:
		e.Try.Due = time.Time{}
	}
	j := Begin(r, e.Try.Cause, e, p.ledger.Facts(r, p.opening.Look))
	p.ledger.Put(r, j.Entry)
	return j
}

// withoutObject makes a request one for the resource as a whole.
func (s *Controller) withoutObject(request *dsl.Request, span *transport.Span) {
	request.Objects, request.Related = s.objects(), s.Relations.None(errNoObject)
	request.Events = events.Log{Log: request.Log, Attempt: span}
}

// objects returns all objects of the resource as the cache has them, sorted.
func (s *Controller) objects() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{}
	for _, o := range s.Own.Objects("") {
		if s.Host.IsKey(o.GetNamespace(), o.GetName()) {
			continue
		}
		out = append(out, s.Own.Tree(o))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// errNoObject is the error of what needs an object, in a handler that has none.
var errNoObject = errors.New("the handler runs for the resource as a whole, and not for one object")
