// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// idle notes that no reconcile begins, and answers questions of people about the object.
func (s *Controller) idle(ctx context.Context, a arrival, w Why) {
	s.Observer.Idle(a.key, w)
	s.Observer.Questions.answer(a.key, func() *why.Answer { return s.look(ctx, a, w) })
}

// Account answers questions about an object for which nothing else is due. The changes of the object stay in the inbox.
func (s *Controller) Account(ctx context.Context, key cache.ObjectName) {
	s.Observer.Questions.answer(key, func() *why.Answer {
		t := s.Inbox.Peek(key)
		memory := t.Memory.Open().forAnswer().expecting(t.Expected, t.Awaited)
		a, err := s.arrive(ctx, key, t, &memory, s.Pauses.Around(key.Namespace, true))
		if err != nil || !a.exists() {
			return s.without(key, err)
		}
		a.question = true
		_, w := s.closedGate(&a)
		return s.look(ctx, a, w)
	})
}

// without answers about an object that cannot be read. Err says why; it is nil if the object is gone.
func (s *Controller) without(key cache.ObjectName, err error) *why.Answer {
	out := s.Answer(key)
	if err != nil {
		out.Without = err.Error()
	} else {
		out.Handlers, out.Unseen = nil, why.NoObject
	}
	return out
}

// look answers a question about an object. It takes the steps of a reconcile, but runs no handler, and neither writes
// nor remembers anything. W is the closed gate; its reason is empty if all are open.
func (s *Controller) look(ctx context.Context, a arrival, w Why) *why.Answer {
	object, err := a.tree(), error(nil)
	if object == nil && a.exists() {
		object, err = s.readLive(ctx, a.key)
	}
	if object == nil {
		return s.without(a.key, err)
	}
	m := a.memory.forAnswer()
	if m.UID != object.GetUID() {
		m = newState(object.GetUID())
	}
	if s.Writer.Renamer.Finds(object) {
		object = s.Writer.Renamer.Renamed(object)
	}
	object = s.asTakenOver(object, m.Progress)
	in := Input{Key: a.key, Object: object, Version: a.version, Deletion: progress.Deletion(object, false), Now: a.now, Changes: a.changes}
	p, st := s.open(in, &m, opening{rules: &s.Rules.Progress})
	out := p.explain(p.result(p.foresee(ctx, st), nil))
	switch {
	case w.Reason.None():
		out.Idle = nil // the inbox has the reason from the last reconcile
	case out.Idle == nil || out.Idle.Reason != w.Reason.String():
		out.Idle = why.IdleFor(w.Reason, w.Detail)
	}
	if w.Reason == why.Paused {
		out.Idle.Ends = s.endsPause(object)
	}
	return out
}

// asTakenOver returns an object as the next reconcile will see it after [Controller.takenOver].
func (s *Controller) asTakenOver(o *unstructured.Unstructured, known progress.Memory) *unstructured.Unstructured {
	if known.Known() || !s.Writer.hasMarker(o) {
		return o
	}
	text, err := progress.TakenOver(&s.Rules.Progress, o, draftOf(o).Look)
	if err != nil {
		return o // the next reconcile reports it
	}
	notes := map[string]any{s.Rules.Progress.Annotation: text}
	return &unstructured.Unstructured{Object: plain.Patched(o.Object, map[string]any{"metadata": map[string]any{"annotations": notes}})}
}

// endsPause tells a person how to end the pause of an object.
func (s *Controller) endsPause(o metav1.Object) string {
	now := s.Pauses.Of(o)
	if now == nil {
		return ""
	}
	key, of := s.Rules.Operator.PausedAnnotation(), ""
	switch now.By {
	case pause.Operator:
		return "operator resume ends it"
	case pause.Namespace:
		of = " of namespace " + now.Namespace
	case pause.Object:
		for _, op := range s.Rules.Operator.Earlier() {
			if _, current := o.GetAnnotations()[key]; !current {
				key = op.PausedAnnotation()
			}
		}
	}
	return "take off annotation " + key + of + " to go on"
}

// foresee computes which handlers would run now, and runs none. It takes the steps of a reconcile without their
// requests.
func (p *run) foresee(ctx context.Context, st State) State {
	p.begun()
	if ids, asked := p.retryAsked(); asked {
		for _, r := range p.Rules.Readers {
			p.retryNow(ids, r)
		}
	}
	st.Found, _ = p.found(st)
	st.Found.Named = p.named()
	for _, r := range p.Rules.Readers {
		var j *Attempt
		p.noteOutcomesRead(st, r)
		if st, j = p.decide(ctx, st, r); j != nil {
			st.Attempts = append(st.Attempts, j)
			st.Why = append(st.Why, p.forecast(st, j))
		}
		if p.outcomesRead != nil {
			st = p.publishOutcome(st, r)
		}
	}
	if p.Rules.Spec.Lifecycle != nil {
		st = p.foreseeChosen(st)
	}
	return st
}

// forecast returns what would happen to an attempt if all gates were open.
func (p *run) forecast(st State, j *Attempt) Why {
	w, _ := p.early(st, j)
	switch {
	case !w.Reason.None():
	case j.Record.Overdue(j.Reader.Handler, p.Now) != nil:
		w.Reason = why.DeadlineOver
	default:
		w.Reason = why.ToRun
	}
	return w
}

// foreseeChosen asks the resource's lifecycle which handlers would run.
func (p *run) foreseeChosen(st State) State {
	chosen, _ := p.runnable(st).Chosen(p.Rules.Spec.Lifecycle)
	for i, w := range st.Why {
		runs := slices.ContainsFunc(chosen, func(r progress.Handler) bool { return r.ID == w.Handler })
		if (w.Reason == why.ToRun || w.Reason == why.DeadlineOver) && !runs {
			st.Why[i].Reason = why.NotChosen
		}
	}
	return st
}
