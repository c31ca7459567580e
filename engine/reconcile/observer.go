// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
	"github.com/handwerk-dev/handwerk/engine/reconcile/history"
)

// NoteKind is the subject of a note.
type NoteKind int

// The kinds of notes.
const (
	// Plain is a note that says all by itself.
	Plain NoteKind = iota
	// FilterFails: the filter of a handler failed. FilterRecovered: it works again.
	FilterFails
	FilterRecovered
)

// Note is a message about a reconcile for people: a log line, an Event on the object, or both.
type Note struct {
	Kind NoteKind
	// Handler is the handler whose filter the note is about; empty for the kind Plain.
	Handler string
	// Line is the log line, empty for none, with Values. Level above zero is for debugging. Warning marks a warning;
	// Grave logs Err as an error.
	Line           string
	Level          int
	Warning, Grave bool
	Err            error
	Values         []any
	// About is the attempt that the line is about; zero for the object as a whole.
	About attempt.About
	// Known: a filter has failed with the same text before. Once: one line stands for all objects of the resource.
	Known, Once bool
	// Action, Reason and Message are the fields of a warning Event; Reason is empty for none.
	Action, Reason, Message string

	// before is how many attempts had ended.
	before int
}

// noted returns the state with one more note.
func (st State) noted(n Note) State {
	n.before = len(st.Ended)
	st.Notes = append(st.Notes, n)
	return st
}

// Observer makes the log, Events and metrics from the results of reconciles. All fields but History are required.
type Observer struct {
	Resource string
	Log      logr.Logger
	Events   *events.Recorder
	Metrics  *ops.Metrics
	// Texts bounds the log of errors that many objects share.
	Texts *attempt.Texts
	// History keeps the reconciles; nil for none. Questions are the open questions of people.
	History   *history.Store
	Questions *Questions

	once sync.Map // lines that are written once
}

// Reconciled reports a reconcile over an object that the cache has.
func (o *Observer) Reconciled(p *run, out Result) {
	o.Ended(p, out, p.Rules.Readers)
	o.keep(p, out)
	o.Questions.answer(p.Key, func() *why.Answer { return p.explain(out) })
}

// Ended reports a run that has ended in any way, with its handlers. Only missing rights are noted before, when requests
// fail: otherwise a right that is granted during the run would wake nobody.
func (o *Observer) Ended(p *run, out Result, handlers []progress.Handler) {
	notes := out.Notes
	for i := range len(out.Ended) + 1 {
		for len(notes) > 0 && notes[0].before <= i {
			o.say(p, notes[0])
			notes = notes[1:]
		}
		if i < len(out.Ended) {
			o.attempted(p, out.Ended[i])
		}
	}
	troubles := &p.memory.Troubles
	if troubles.Any() {
		o.settled(p, out)
	}
	if out.Written != nil {
		o.moved(out)
	}
	if out.HealthKnown {
		p.Inbox.SetHealth(p.Key, out.Health)
	}
	if o.Log.V(2).Enabled() {
		log := p.Log()
		for _, w := range out.Reasons(handlers) {
			if w.Reason != why.NothingDue && !w.Reason.None() {
				log.V(2).Info("handler was looked at", "handler", w.Handler, "cause", string(w.Cause), "why", w.String())
			}
		}
	}
}

// Idle reports that a key was due and no reconcile began.
func (o *Observer) Idle(key cache.ObjectName, w Why) {
	r := o.History.Record()
	r.Idle(w.String())
	o.History.Keep(o.id(key), history.Moment{At: time.Now()}, r, nil)
	if o.Log.V(2).Enabled() {
		attempt.About{Key: key}.Log(o.Log).V(2).Info("no handler runs now", "why", w.String())
	}
}

// finishedAgain is the log line for the end of failed reconciles.
const finishedAgain = "reconcile finished again"

// settled logs which handlers work again, once their changes are written, and notes which are not tried again for now.
func (o *Observer) settled(p *run, out Result) {
	troubles := &p.memory.Troubles
	for _, j := range out.Attempts {
		if j.Voided {
			troubles.Void(j.Reader.ID)
		}
	}
	if troubles.Settle(); out.Err != nil {
		return
	}
	for _, r := range p.Rules.Readers {
		if out.Attempts.Of(r) == nil {
			troubles.Rest(r.ID)
		}
	}
	if out.HealthKnown {
		troubles.LogRecovered(p.Log(), Itself, finishedAgain)
	}
}

// say writes a note to the log, and sends it as an Event.
func (o *Observer) say(p *run, n Note) {
	switch n.Kind {
	case FilterFails:
		f := p.failure(p.Log().WithValues("handler", n.Handler), n.Handler, n.Err)
		f.Line, f.Grave, f.Known = cmp.Or(n.Line, "filter failed; the handler does not see the object"), true, n.Known
		p.memory.Troubles.Say(o.Texts, filterOf(n.Handler), f)
	case FilterRecovered:
		p.Log().Info("filter can be asked again", "handler", n.Handler)
		p.memory.Troubles.Over(filterOf(n.Handler))
	case Plain:
		o.line(p, n)
	}
	if n.Reason != "" {
		o.event(p, n.Action, n.Reason, n.Message)
	}
}

// event sends an Event about the object of a run. A schedule has none.
func (o *Observer) event(p *run, action, reason, message string) {
	if !p.resourceWide() {
		o.Events.Warn(p.Object, action, reason, message)
	}
}

// line writes the line of a note.
func (o *Observer) line(p *run, n Note) {
	if n.Line == "" {
		return
	}
	if n.Once {
		if _, written := o.once.LoadOrStore(n.Line, true); written {
			return
		}
	}
	n.Log(p.logOf(p.Input, n.About))
}

// Log writes the line of a note to a log.
func (n Note) Log(log logr.Logger) {
	switch {
	case n.Grave:
		log.Error(n.Err, n.Line, n.Values...)
	case n.Warning:
		log.Info(n.Line, append([]any{logmark.Warning, true}, n.Values...)...)
	default:
		log.V(n.Level).Info(n.Line, n.Values...)
	}
}

// filterOf is the key of a handler's filters among the troubles.
func filterOf(handler string) string { return "filter " + handler }

// attempted reports how an attempt of a handler has ended.
func (o *Observer) attempted(p *run, a Ended) {
	run := ops.HandlerRun{Resource: o.Resource, Handler: a.Handler.ID, Cause: a.Cause, Outcome: ops.Success, Duration: a.Took}
	about := attempt.About{Handler: a.Handler.ID, Cause: a.Cause, Attempt: a.Attempt}
	switch {
	case a.Err != nil:
		o.failed(p, a, p.logOf(p.Input, about))
		run.Outcome = attempt.Outcome(a.Err, a.Trouble.After.Done, a.Trouble.After.Failed)
	case o.Log.V(1).Enabled():
		p.logOf(p.Input, about).V(1).Info("handler succeeded", "took", a.Took.String())
	}
	if a.Err == nil && p.memory.Troubles.Has(a.Handler.ID) {
		p.memory.Troubles.Works(p.logOf(p.Input, about), a.Handler.ID)
	}
	o.Metrics.Handled(run)
}

// moved reports the transitions of machines that a reconcile has written to its object.
func (o *Observer) moved(out Result) {
	for _, j := range out.Attempts {
		if j.Machine == nil || !j.Ran {
			continue
		}
		for _, v := range j.Machine.Taken(j.Reader.Machine, out.Written) {
			o.Metrics.Moved(ops.Move{Resource: o.Resource, Machine: j.Reader.ID, From: label(j, v.From), To: v.To, Stayed: v.Stayed})
			o.Events.Send(ops.ByHandler, out.Written, j.Reader.ID, v.Kind(), v.To, v.String())
		}
	}
}

// failed reports that an attempt of a handler has failed, or waits.
func (o *Observer) failed(p *run, a Ended, log logr.Logger) {
	if most, waits := attempt.Waits(a.Err); waits {
		log.V(1).Info("handler waits", "reason", a.Err.Error(), "timeout", most.String())
		if a.Trouble.Part != nil {
			o.warn(p, a, a.Trouble.Part)
		}
		return
	}
	p.memory.Troubles.Complain(o.Texts, attempt.Attempt{
		Failure: p.failure(log, a.Handler.ID, a.Err), Before: a.Trouble.Before, After: a.Trouble.After, Covered: a.Trouble.Logged,
	})
	o.warn(p, a, a.Err)
}

// warn sends an Event about a handler that fails, or about its sub-handler.
func (o *Observer) warn(p *run, a Ended, err error) {
	after := a.Trouble.After
	if after.Done && !after.Failed || !Fails(after) || !after.Failed && source.IsUnanswered(err) {
		return // without a server the Event could not be sent
	}
	reason, text := a.complaint(p.Gone)
	if reason == conditions.HandlerFailing && a.Trouble.Warned {
		return // the handler has sent its own warning
	}
	o.event(p, a.Handler.ID, reason, text)
}

// failure returns a handler's failure for the log.
func (p *run) failure(log logr.Logger, handler string, err error) attempt.Failure {
	f := attempt.Failure{Log: log, Handler: handler, Err: err}
	if !p.resourceWide() {
		f.Key = p.Key
	}
	return f
}
