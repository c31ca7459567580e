// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// secure adds the finalizer before the first handler of an object runs. When no handler is due, the
// finalizer goes along with the pass's write.
func (p *pass) secure(ctx context.Context) error {
	if p.secured || p.gone || p.deletion != "" || p.finalizer() || !p.wantsFinalizer() {
		return nil
	}
	p.secured = true
	marks := patch.Marks{Finalizer: p.r.engine.op.Finalizer(), Add: true}
	base, err := p.send(ctx, p.object, func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	if err != nil {
		return err
	}
	p.family.Rebase(base)
	return nil
}

// lay lays what a handler wants on the object as those after it see it.
func (p *pass) lay(ctx context.Context, j *job, wants *dsl.Patch) error {
	j.offers = len(wants.Offered) > 0
	wants, err := p.r.conditions.Offered(ctx, wants, p.patch.Conditions)
	if err != nil {
		return err
	}
	j.wants = wants
	p.patch.Join(wants)
	p.showAll(p.laid(p.current, wants))
	return nil
}

// laid is an object with what is wanted of it.
func (p *pass) laid(o *unstructured.Unstructured, wants *dsl.Patch) *unstructured.Unstructured {
	if wants == nil || wants.Empty() {
		return o
	}
	change := patch.Change(o, wants, p.object.GetGeneration(), p.now)
	if len(change) == 0 {
		return o
	}
	return &unstructured.Unstructured{Object: cause.Patched(o.Object, change)}
}

// showAll makes an object the one that handlers see from here on.
func (p *pass) showAll(o *unstructured.Unstructured) {
	if o == p.current {
		return
	}
	p.current, p.sight, p.answers = o, book.NewLook(o.Object), nil
}

// close writes what the pass accumulated and remembers what came of it.
func (p *pass) close(ctx context.Context) error {
	marks := p.settle()
	base, along := p.family.Trim()
	marks.Along = along
	var err error
	if p.gone {
		err = p.letGo(ctx, marks)
	} else if marks, err = p.write(ctx, base, marks); apierrors.IsInvalid(err) && !p.patch.Empty() {
		marks, err = p.blame(ctx, err)
	}
	if err != nil && !errors.Is(err, patch.ErrGone) {
		p.keepOutcomes()
		p.refused(err)
		return err
	}
	p.remember(marks)
	return nil
}

// write sends what the pass accumulated. A cache that holds a part of the object alone does not tell what
// there is to change, so the object is read before that.
func (p *pass) write(ctx context.Context, base *unstructured.Unstructured, marks patch.Marks) (patch.Marks, error) {
	if p.partial() && !p.patch.Empty() {
		live, err := p.r.engine.reader(ctx, p.r.own.Resource().GVR, p.key)
		if err != nil {
			return marks, fmt.Errorf("reading object before it is written: %w", err)
		}
		if live == nil || live.GetUID() != p.object.GetUID() {
			return marks, patch.ErrGone
		}
		base = live
	}
	if marks.Annotation == p.r.engine.op.StateAnnotation() && marks.State != "" {
		sent := p.book.Stored(marks.State)
		p.memory.sent = &sent
	}
	seen := p.object
	result, err := p.send(ctx, base, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != seen {
			seen, marks = live, p.replay(live, marks)
		}
		// What handlers foresaw is held against the answer, which is to have nobody else's changes in it.
		marks.Locked = marks.Locked || !p.patch.Empty()
		return p.patch, marks
	})
	if err == nil && result != base {
		marks = p.correct(ctx, result, marks)
	}
	return marks, err
}

// replay looks at what handlers want once more, from the object as it is meanwhile. What one wants holds
// only where its view is as it was when it ran; otherwise it runs again.
func (p *pass) replay(live *unstructured.Unstructured, marks patch.Marks) patch.Marks {
	at := p.shown(live)
	void := false
	p.patch = dsl.NewPatch()
	for _, j := range p.jobs {
		if !j.asks() {
			continue
		}
		if !p.holds(j, at) {
			void = true
			p.void(j)
			continue
		}
		p.patch.Join(j.wants)
		at = p.laid(at, j.wants)
	}
	p.showAll(at)
	if !void {
		return marks
	}
	p.family.Await(live) // for what they saw is older
	p.next = p.next.atOnce()
	again := p.settle()
	again.Along = marks.Along
	return again
}

// holds reports whether an object is, in what a handler looks at, as it was when it ran, or as it left it.
func (p *pass) holds(j *job, at *unstructured.Unstructured) bool {
	digest := book.NewLook(at.Object).Digest(j.reader.View)
	return digest == j.saw || digest == j.left
}

// void takes back what a handler did, as far as the book knows.
func (p *pass) void(j *job) {
	e := j.entry.Vain()
	p.put(j.reader, e)
	j.wants, j.ran = nil, false
	j.record = e.Try
}

// shown is an object as the cache shows it.
func (p *pass) shown(o *unstructured.Unstructured) *unstructured.Unstructured {
	return cached.Form{Profile: p.r.spec.Cache, Keep: cached.Keep(p.r.spec.Keep)}.Shown(o)
}

// keepOutcomes remembers what handlers did in a pass that broke off, or whose write has failed, as far as
// nothing of it is lost: those that wanted nothing of the object need not run again.
func (p *pass) keepOutcomes() {
	for _, j := range p.jobs {
		if j.asks() {
			p.void(j)
		}
	}
	m := p.memory
	m.book, m.known, m.mark, m.outcomes, m.generation = p.book, true, p.stored, p.outcomes, p.generation
	if p.stir(); !p.gone && p.deletion == "" {
		m.stirred = slices.Compact(slices.Sorted(slices.Values(append(m.stirred, p.stirred...))))
	}
}

// letGo takes the marks of the operator from an object that is gone only from sight, because a selector
// does not select it any more: nobody would do it later, it could never be deleted, and when it comes
// back it is new.
func (p *pass) letGo(ctx context.Context, marks patch.Marks) error {
	seen := p.finalizer() || p.text != "" && p.r.own.Chooses() ||
		p.r.rules.finalizes && p.r.spec.Cache == dsl.CacheLive // which does not show it
	if !marks.Remove || !seen {
		return nil
	}
	live, err := p.r.engine.reader(ctx, p.r.own.Resource().GVR, p.key)
	if err == nil && live != nil && live.GetUID() == p.object.GetUID() {
		if live.GetAnnotations()[p.r.engine.op.StateAnnotation()] != "" {
			marks.Annotation, marks.State = p.r.engine.op.StateAnnotation(), ""
		}
		marks.Along = p.family.LeftBehind(live)
		_, err = p.send(ctx, live, func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	}
	if err != nil && !errors.Is(err, patch.ErrGone) {
		p.memory.parted = false
		return fmt.Errorf("letting object go: %w", err)
	}
	return nil
}

// refused says on the object that the server does not take what handlers want: waiting alone will
// not mend that.
func (p *pass) refused(err error) {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		p.r.engine.events.Warn(p.object, "write", "WriteRefused", err.Error())
	}
}

func (p *pass) send(ctx context.Context, base *unstructured.Unstructured, wish patch.Wish) (*unstructured.Unstructured, error) {
	served := p.r.own.Resource()
	target := patch.Target{
		Client: p.r.engine.writer(served.GVR, p.key.Namespace), Object: base, Resource: served.GVR.GroupResource(),
		Subresource: served.Status, Manager: p.r.engine.op.Name, Generation: p.object.GetGeneration(), Now: p.now,
	}
	schemas := p.r.schemas.Load()
	if p.memory.schemas == schemas {
		target.Futile = p.memory.futile
	}
	result, err := p.sendSaying(ctx, target, wish)
	p.family.Wrote(result)
	if err == nil && !p.patch.Empty() {
		p.memory.futile, p.memory.schemas = result.Futile, schemas
	}
	if errors.Is(err, patch.ErrGone) {
		p.log().V(1).Info("object is gone; what its handlers want of it is dropped")
	}
	if len(result.Dropped) > 0 {
		p.r.engine.feeds.WantCRDs() // should the schema get them, they are sent again
		p.log().Info("the API server dropped fields that its schema does not have", dsl.LogWarning, true, "fields", fmt.Sprint(result.Dropped))
	}
	return result.Object, err
}
