// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// probe sends what a handler wants by itself when the server refused that the last time: those after it are
// not to see what never comes to be. The error is that of a server that refuses again.
func (p *run) probe(ctx context.Context, j *pass.Job) error {
	if !p.memory.Refused[j.Reader.ID] || p.gone {
		return nil
	}
	base, err := p.complete(ctx, p.family.Base())
	if err != nil {
		return nil // the pass's own write comes upon it, too
	}
	p.family.Rebase(base)
	if err = p.alone(ctx, j); patch.Refused(err) {
		without := pass.DraftOf(p.object)
		without.Whole = p.Whole
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
	}
	return nil
}

// alone sends what one handler wants of the object. When somebody else has changed what the handler looks at or writes, it
// sends nothing: the pass's own write deals with that.
func (p *run) alone(ctx context.Context, j *pass.Job) error {
	sent := false
	result, err := p.send(ctx, p.family.Base(), func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		wishes, generation := j.Machine.Wishes(j.Wants), p.r.own.Resource().Generation(p.object)
		at := p.bare(live)
		sent = !p.moved(live) || j.Holds(at.Look) && p.repeats(j, wishes, at, p.seen())
		wants, err := patch.Resolve(live, wishes, generation, p.now)
		if sent = sent && err == nil; !sent {
			return dsl.NewPatch(), patch.Marks{}
		}
		return wants, patch.Marks{Finalizer: p.r.rules.Finalizer, Earlier: p.r.rules.Earlier}
	})
	if err != nil {
		return err
	}
	if p.family.Rebase(result); sent {
		j.Saw = p.looking(result).Look.Digest(j.Reader.View) // what it has changed itself is no news
	}
	return nil
}

// also returns the draft with what another handler wants. Where that cannot be worked out any more, the handler runs again.
func (p *run) also(at pass.Draft, j *pass.Job) pass.Draft {
	next, err := at.With(j.Wants, p.r.own.Resource().Generation(p.object), p.now)
	if err != nil {
		p.void(j)
		p.next = p.next.AtOnce()
	}
	return next
}

// blame finds the handlers whose changes the server does not take, by sending those of each by themselves.
// They have failed; what others want, and that they have handled the object, is written.
func (p *run) blame(ctx context.Context, said error) (verdict, error) {
	wanting := p.jobs.Asking()
	live, err := p.complete(ctx, p.family.Base())
	if err != nil {
		return verdict{}, err
	}
	p.family.Rebase(live)
	at := pass.DraftOf(p.known)
	at.Whole = live
	p.show(p.alsoFiltered(at, p.filtered...))
	for _, j := range wanting {
		err := said
		if len(wanting) > 1 {
			err = p.alone(ctx, j)
		}
		switch {
		case err == nil:
			p.show(p.also(p.Draft, j))
		case patch.Refused(err):
			if err = p.fault(ctx, j, err); err != nil {
				return verdict{}, err
			}
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
func (p *run) logOfJob(j *pass.Job) logr.Logger {
	return p.r.logOf(p.facts, attempt.About{Handler: j.Reader.ID, Cause: j.Cause, Attempt: j.Record.Attempts + 1})
}

// fault makes an attempt one that has failed: the server does not take what the handler wants. Of a machine, one of its actions
// has: what it does then, another attempt says. The error is that of a pass that must end.
func (p *run) fault(ctx context.Context, j *pass.Job, err error) error {
	defer p.memory.Refuse(j.Reader.ID)
	p.memory.Refuse(j.Reader.ID) // so that what the other attempt wants is sent by itself
	j.Wants, j.Record, j.Refused = nil, j.Entry.Try, !j.Machine.Blame(err)
	if !j.Refused {
		return p.attempt(ctx, j)
	}
	p.note(p.logOfJob(j), j, fmt.Errorf("changing the object: %w", err), 0)
	e := j.Entry
	e.Try = j.Record
	p.ledger.Put(j.Reader, e.End(j.Reader.View, j.Saw, p.Look.Kept(j.Reader.View)))
	return nil
}
