// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/draft"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/plan"
)

// probe sends what a handler wants by itself when the server refused that the last time: those after it are
// not to see what never comes to be. The error is that of a server that refuses again.
func (p *pass) probe(ctx context.Context, j *plan.Job) error {
	if !p.memory.Refused[j.Reader.ID] || p.gone {
		return nil
	}
	seen := p.family.Base()
	base, err := p.complete(ctx, seen)
	if err != nil {
		return nil // the pass's own write comes upon it, too
	}
	result, err := p.send(ctx, base, p.alone(j, seen))
	if apierrors.IsInvalid(err) {
		without := draft.Of(p.object)
		for _, other := range p.jobs {
			if other != j && other.Wants != nil {
				without = p.also(without, other)
			}
		}
		p.show(without)
		return err
	}
	if err == nil {
		delete(p.memory.Refused, j.Reader.ID)
		p.family.Rebase(result)
	}
	return nil
}

// alone is the wish for what one handler wants of an object. When somebody has written to that since it was seen, in
// what the handler looks at, it is none: what becomes of it then is for the pass's own write to see.
func (p *pass) alone(j *plan.Job, seen *unstructured.Unstructured) patch.Wish {
	return func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != seen && !j.Holds(p.looking(live).Look) {
			return dsl.NewPatch(), patch.Marks{}
		}
		wants, err := patch.Resolve(live, j.Wants, p.object.GetGeneration(), p.now)
		if err != nil {
			return dsl.NewPatch(), patch.Marks{}
		}
		return wants, patch.Marks{Finalizer: p.r.rules.Finalizer}
	}
}

// also returns the draft with what another handler wants. Where that cannot be worked out any more, the handler runs again.
func (p *pass) also(at draft.Draft, j *plan.Job) draft.Draft {
	next, err := at.With(j.Wants, p.object.GetGeneration(), p.now)
	if err != nil {
		p.void(j)
		p.next = p.next.AtOnce()
	}
	return next
}

// blame finds the handlers whose changes the server does not take, by sending those of each by themselves.
// They have failed; what others want, and that they have handled the object, is written.
func (p *pass) blame(ctx context.Context, said error) (verdict, error) {
	wanting, seen := p.jobs.Asking(), p.object
	live, err := p.complete(ctx, seen)
	if err != nil {
		return verdict{}, err
	}
	p.show(draft.Of(p.object))
	for _, j := range wanting {
		err := said
		if len(wanting) > 1 {
			var result *unstructured.Unstructured
			if result, err = p.send(ctx, live, p.alone(j, seen)); err == nil {
				live, seen = result, result
			}
		}
		switch {
		case err == nil:
			p.show(p.also(p.Draft, j))
		case apierrors.IsInvalid(err):
			p.fault(j, err)
		default:
			return verdict{}, err
		}
	}
	s := p.settle()
	base, along := p.family.Trim()
	s.marks.Along = along
	return p.writeFrom(ctx, base, s)
}

// logOfJob returns the log for what comes of a job.
func (p *pass) logOfJob(j *plan.Job) logr.Logger {
	return p.r.logOf(p.facts, attempt.About{Handler: j.Reader.ID, Cause: j.Cause, Attempt: j.Record.Attempts + 1})
}

// fault makes an attempt one that has failed: the server does not take what the handler wants.
func (p *pass) fault(j *plan.Job, err error) {
	if p.memory.Refused == nil {
		p.memory.Refused = map[string]bool{}
	}
	p.memory.Refused[j.Reader.ID] = true
	j.Wants, j.Record = nil, j.Entry.Try
	p.note(p.logOfJob(j), j, fmt.Errorf("changing the object: %w", err), 0)
	e := j.Entry
	e.Try = j.Record
	p.ledger.Put(j.Reader, e.End(j.Reader.View, j.Saw, p.Look.Kept(j.Reader.View)))
}
