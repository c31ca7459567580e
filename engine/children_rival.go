// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// answerSoon is how long a handler waits for another one to say whether it keeps a child.
const answerSoon = time.Second

// rivalry is a child that two handlers want, each otherwise. Both are named as children name their maker: a
// handler, or a step of one.
type rivalry struct {
	// holder made the child, by wants it, too. Try is what that one was about to do.
	holder, by, try string
	// asked is when the holder was asked to run once more, zero when it was not, or has answered.
	asked time.Time
	// reached: the holder's last run has come to the child. Left: one has succeeded without.
	reached, left bool
}

// rivals are what this pass knows of handlers that apply one child. It is guarded by the pass's lock.
type rivals struct {
	// wanted has for each child who has applied it in this pass, or was about to.
	wanted map[childID][]string
	// turns are the handlers that have something to do in this pass, parted those that are done with the
	// deletion.
	turns  map[string]turn
	parted map[string]bool
}

// maker names who applies a child: the handler, or that step of it which the child names.
func (c *children) maker(spec dsl.ChildSpec) string {
	if h := c.pass.r.makerOf(spec.Handler); h >= 0 && c.pass.r.rules.readers[h].ID == c.handler {
		return spec.Handler
	}
	return c.handler
}

// makerOf returns the index of the handler that children name as their maker, or a step of which they do; less
// than zero when there is none.
func (r *resource) makerOf(name string) int {
	best := -1
	for i, h := range r.rules.readers {
		if h.ID == name {
			return i
		}
		if strings.HasPrefix(name, h.ID+".") && (best < 0 || len(h.ID) > len(r.rules.readers[best].ID)) {
			best = i
		}
	}
	return best
}

// reach notes that a handler is about to apply a child, or holds it against what is there.
func (c *children) reach(w *wanted) {
	p, id, me := c.pass, w.id(), c.maker(w.spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rivals.wanted == nil {
		p.rivals.wanted = map[childID][]string{}
	}
	if list := p.rivals.wanted[id]; !slices.Contains(list, me) {
		p.rivals.wanted[id] = append(list, me)
	}
	if r := p.memory.rivals[id]; r != nil && r.holder == me {
		r.reached, r.left, r.asked = true, false, time.Time{}
	}
}

// contest returns an error where a child that is there, and that this handler would change, is kept otherwise by
// another handler of the object: they would undo each other's work. The first one in declared order has it.
//
// Who has it, the child says. That one may have given it up, so where it has not just run it is asked: it runs
// once more before this one may change the child.
func (c *children) contest(w *wanted, live *unstructured.Unstructured) error {
	p, id, me := c.pass, w.id(), c.maker(w.spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.memory.rivals[id]
	holder := p.holder(id, known, me, w.applier.Owner.Keys.Maker(live))
	if known != nil && (known.holder != holder || known.by != me) {
		known = nil
	}
	switch verdict := c.judge(id, holder, me, known); {
	case verdict == claimNone && (known == nil || !known.left):
		delete(p.memory.rivals, id)
	case verdict == claimNone:
	case known == nil:
		known = &rivalry{holder: holder, by: me, try: c.try, reached: verdict == claimHolds}
		if verdict == claimUnsure {
			known.asked = p.now
		}
		if p.memory.rivals == nil {
			p.memory.rivals = map[childID]*rivalry{}
		}
		p.memory.rivals[id] = known
		return known.fault(w)
	default:
		if verdict == claimHolds {
			known.asked = time.Time{}
		}
		return known.fault(w)
	}
	return nil
}

// holder returns who has a child, empty when nobody but me does. What the child says counts where it names a
// handler that is there; otherwise it is who was found to have it before, or came to it first in this pass.
func (p *pass) holder(id childID, known *rivalry, me, says string) string {
	switch {
	case says == me:
		return ""
	case p.r.makerOf(says) >= 0:
		return says
	case known != nil && known.by == me:
		return known.holder
	}
	if all := p.rivals.wanted[id]; len(all) > 0 && all[0] != me {
		return all[0]
	}
	return ""
}

// fault is the error for who wants the child, too.
func (r *rivalry) fault(w *wanted) error {
	if !r.asked.IsZero() {
		return dsl.Waiting(fmt.Sprintf("%s: handler %s made it, and is to say whether it keeps it", nameFor(w.object), r.holder), answerSoon)
	}
	return &dsl.CollisionError{Kind: w.object.GetKind(), Namespace: w.key.Namespace, Name: w.key.Name, Handler: r.holder}
}

// claim is what a handler has to say to another one's changing its child.
type claim int

const (
	// claimNone: nothing.
	claimNone claim = iota
	// claimUnsure: it is to be asked.
	claimUnsure
	// claimHolds: it keeps the child.
	claimHolds
)

// judge finds out whether the holder of a child keeps it against me. Known is what was found before, nil for
// nothing.
func (c *children) judge(id childID, holder, me string, known *rivalry) claim {
	p := c.pass
	at := p.r.makerOf(holder)
	switch {
	case holder == "" || at < 0:
		return claimNone
	case slices.Contains(p.rivals.wanted[id], holder):
		return claimHolds
	case p.deletion != "":
		return p.judgeLast(p.r.rules.readers[at].Handler)
	case p.r.rules.readers[at].ID == c.handler: // another step, which has run before this one, or has yet to
		return claimed(known != nil && known.reached)
	case at > p.r.makerOf(me), known != nil && known.left:
		return claimNone
	}
	return c.judgeAbsent(p.r.rules.readers[at].Handler, known)
}

// judgeLast is judge for the children of a deletion. Who made one and is done does not run again for it, and so
// cannot be asked; but only a handler that runs for deletions alone has made it then.
func (p *pass) judgeLast(h *dsl.Handler) claim {
	_, due := p.rivals.turns[h.ID]
	return claimed(lasts(h) && (due || p.rivals.parted[h.ID]))
}

// lasts reports whether a handler runs for deletions alone.
func lasts(h *dsl.Handler) bool {
	return !slices.ContainsFunc(h.Causes, func(c dsl.Cause) bool { return c != dsl.Delete })
}

// judgeAbsent is judge where the holder has not come to the child in this pass.
func (c *children) judgeAbsent(h *dsl.Handler, known *rivalry) claim {
	p := c.pass
	t, due := p.rivals.turns[h.ID]
	switch {
	case known != nil && known.asked.IsZero():
		return claimed(returns(h) || known.try == c.try)
	case due:
		return t.judge(known)
	case known != nil && known.asked.Before(p.now): // it does not see the object
		return claimNone
	case h.On(dsl.Child) || h.On(dsl.Resync):
		return claimUnsure
	}
	return claimNone
}

// judge is judgeAbsent for a holder that has something to do in this pass. One that waits, and has not come to the
// child in its run, may wait for what the other one is to make of it.
func (t turn) judge(known *rivalry) claim {
	switch {
	case t.step > 0:
		return claimHolds // what it made in a step before, it keeps
	case t.waits && t.ran:
		return claimNone
	case t.waits && known == nil:
		return claimUnsure
	}
	return claimed(!t.ran || !t.through)
}

func claimed(yes bool) claim {
	if yes {
		return claimHolds
	}
	return claimNone
}

// returns reports whether a handler comes back to an object in which nothing changes that it looks at.
func returns(h *dsl.Handler) bool {
	return h.On(dsl.Child) || h.On(dsl.Timer) || h.On(dsl.Resync) || h.On(dsl.RelatedChange)
}
