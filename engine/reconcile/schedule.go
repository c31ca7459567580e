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
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// schedulePrefix begins the key of a schedule in the queue. No object's name has a slash.
const schedulePrefix = "schedule/"

// ScheduleKey returns the key of a handler that runs for the resource as a whole.
func ScheduleKey(handler string) cache.ObjectName {
	return cache.ObjectName{Name: schedulePrefix + handler}
}

// IsSchedule reports whether a key is the key of a schedule.
func IsSchedule(key cache.ObjectName) bool { return strings.HasPrefix(key.Name, schedulePrefix) }

// scheduleOf returns the handler of a schedule's key, nil for the key of an object.
func (s *Controller) scheduleOf(key cache.ObjectName) *progress.Handler {
	id, is := strings.CutPrefix(key.Name, schedulePrefix)
	i := slices.IndexFunc(s.Rules.Schedules.Handlers, func(h progress.Handler) bool { return is && h.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Rules.Schedules.Handlers[i]
}

// FailingSchedules returns the schedules that fail, by their ids.
func (s *Controller) FailingSchedules() map[string]ops.UnreadyObject {
	out := map[string]ops.UnreadyObject{}
	for key, failing := range s.Inbox.Failing() {
		if h := s.scheduleOf(key); h != nil {
			out[h.ID] = failing
		}
	}
	return out
}

// reconcileSchedule runs a handler for the resource as a whole when its time has come. The state of its key lasts as
// long as the term.
func (s *Controller) reconcileSchedule(ctx context.Context, key cache.ObjectName, h progress.Handler, t *Batch) (queue.Next, error) {
	m := t.Memory.Open()
	if t.Memory == nil {
		m.Ticks = []Tick{firstTickOf(h.Handler, time.Now(), false, nil)}
	}
	defer func() { t.Memory = m.Stored() }()
	if !m.CaughtUp(ctx, s.Host.Read) {
		return queue.Next{}, Park(t, &m)
	}
	p, st := s.open(Input{Key: key, Object: s.Own.NewObject(), Now: time.Now()}.traced(ctx, s.Tracer), &m, opening{rules: &s.Rules.Schedules, wakes: true})
	j := p.scheduled(st, h, len(t.Granted) > 0)
	if j != nil {
		if s.Own.Listed("") != nil {
			return queue.Next{}.Sooner(unsureLook, queue.Due), nil // an incomplete cache looks as if objects were gone
		}
		st.Attempts = Attempts{j}
		var runs bool
		if st, runs = p.mayRun(st, j); runs {
			var err error
			span := transport.NewSpan(p.Host.Held)
			if st, err = p.call(ctx, st, j, p.scheduleRequest(st, j, span), span); err != nil {
				return queue.Next{}, err
			}
		}
	}
	p.progress.Abandon() // nothing of it is stored
	st = p.scheduleTick(p.alarm(st), h, j)
	out := p.result(st, nil)
	out.Health, out.HealthKnown = ops.ObjectHealth{Open: p.health(st, []progress.Handler{h}, false).Open}, true // no object counts as ready or not
	p.Observer.Ended(p, out, s.Rules.Schedules.Handlers)
	t.Handled()
	return out.Due, nil
}

// scheduleTick sets when the handler runs next.
func (p *run) scheduleTick(st State, h progress.Handler, j *Attempt) State {
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

// scheduled returns the attempt of a schedule, nil if its time has not come. A pending retry covers times that pass
// meanwhile.
func (p *run) scheduled(st State, r progress.Handler, granted bool) *Attempt {
	e := p.progress.Entry(r)
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
	j := Begin(r, e.Try.Cause, e, p.progress.Facts(r, st.Look))
	p.progress.Put(r, j.Entry)
	return j
}

// scheduleRequest returns the request of a handler that runs for the resource as a whole.
func (p *run) scheduleRequest(st State, j *Attempt, span *transport.Span) *dsl.Request {
	none := apply.NoChildren(errNoObject)
	out := p.requestFor(p.plainSubject(st.Draft, j.Reader, j.Cause, j.Record, none, p.indexes.For(j.Reader.ID, "")), j, span)
	out.Children, out.Targets = none, apply.NoTargets(errNoObject)
	out.Objects, out.Related = p.objects(), p.Relations.None(errNoObject)
	out.Events = events.Log{Log: out.Log, Attempt: span, Recorder: p.Observer.Events, Handler: j.Reader.ID}
	return out
}

// objects returns all objects of the resource in the cache, sorted.
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

// errNoObject is the error of functions that need an object, in a handler that has none.
var errNoObject = errors.New("the handler runs for the resource as a whole, and not for one object")
