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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// errRefused says that the server did not take a condition a moment ago.
var errRefused = errors.New("the API server does not take the condition")

// handlersFailing is the type of the condition that says which handlers fail.
const handlersFailing = "HandlersFailing"

// The reasons of that condition, the gravest first.
const (
	reasonFailed  = "HandlerFailed"
	reasonFailing = "HandlerFailing"
	reasonFilter  = "FilterFailed"
)

// lament asks for the condition that says which handlers fail, or for its end. It is written when
// another set of handlers fails than before, not for each attempt: attempts would cost requests.
func (p *pass) lament(marks *patch.Marks) {
	if p.gone || p.r.spec.Cache == dsl.CacheMetadata || len(p.r.spec.Keep) > 0 {
		return // what other conditions there are is not known
	}
	there, by := p.lamented(), "Operator "+p.r.engine.op.Name+": "
	said, ours := strings.CutPrefix(textOf(there, "message"), by)
	if there != nil && (there["status"] != string(metav1.ConditionTrue) || !ours) {
		return // somebody else's
	}
	found := p.failures(namedIn(said))
	p.memory.owes = p.memory.owes && len(found.handlers) > 0
	who := strings.Join(found.handlers, ", ") + ": "
	switch {
	case found.open && !found.news:
		// What is said holds until it is known better.
	case len(found.handlers) > 0 && (there["reason"] != found.reason || !strings.HasPrefix(said, who)):
		marks.Condition = &metav1.Condition{Type: handlersFailing, Status: metav1.ConditionTrue, Reason: found.reason, Message: by + who + found.message}
	case len(found.handlers) == 0 && there != nil:
		marks.Mended = handlersFailing
	}
}

// namedIn are the handlers that the message of a condition names.
func namedIn(message string) []string {
	names, _, found := strings.Cut(message, ": ")
	if !found {
		return nil
	}
	return strings.Split(names, ", ")
}

// failings are handlers of an object that fail, for its condition.
type failings struct {
	handlers []string
	// reason is the gravest one, message the newest error of the first handler
	// that is known to fail.
	reason, message string
	// open: whether a handler that the condition names is mended is not known yet; news: it does not name
	// one that fails.
	open, news bool
}

// failures are the handlers that fail and say so by no condition of their own. One that did not run in
// this pass was told when it did.
func (p *pass) failures(named []string) failings {
	var out failings
	for _, reader := range p.r.rules.readers {
		h := reader.Handler
		known := slices.Contains(named, h.ID)
		reason, message := p.failure(reader, known)
		switch {
		case p.tellsItself(h):
		case reason != "" && (known || reason == reasonFilter || p.ran(h) || p.memory.owes):
			out.handlers, out.news = append(out.handlers, h.ID), out.news || !known
			out.reason, out.message = graver(out.reason, reason), cmp.Or(out.message, message)
		case known && p.undecided(h):
			out.handlers, out.open = append(out.handlers, h.ID), true
		}
	}
	return out
}

// undecided reports whether a handler is about to be tried again, which will tell whether it is mended.
func (p *pass) undecided(h *dsl.Handler) bool {
	r := p.recordOf(h)
	return !r.Done && r.Attempts > 0
}

// graver is the reason that says more.
func graver(a, b string) string {
	for _, reason := range []string{reasonFailed, reasonFailing, reasonFilter} {
		if a == reason || b == reason {
			return reason
		}
	}
	return ""
}

// failure says why a handler fails, and in what words; the reason is empty when it does not. Filters of
// one that is known to the condition are asked again when this process has not heard of them.
func (p *pass) failure(reader book.Reader, known bool) (reason, message string) {
	h := reader.Handler
	if r := p.recordOf(h); r.Failed {
		return reasonFailed, r.Message
	} else if fails(r) {
		return reasonFailing, r.Message
	}
	if known && h.When != nil && p.puzzled(h) == "" {
		p.answer(&job{reader: reader, cause: causeOf(h)})
	}
	if text := p.puzzled(h); text != "" {
		return reasonFilter, text
	}
	return "", ""
}

// causeOf is a cause of the handler to ask its filters with.
func causeOf(h *dsl.Handler) dsl.Cause {
	for _, c := range []dsl.Cause{dsl.Update, dsl.Create, dsl.Delete} {
		if h.On(c) {
			return c
		}
	}
	return dsl.Resume
}

// tellsItself reports whether a handler has a condition of its own in which it says that it fails.
func (p *pass) tellsItself(h *dsl.Handler) bool {
	return slices.ContainsFunc(h.Needs, func(n dsl.Need) bool { return n.Offered }) ||
		slices.ContainsFunc(p.jobs, func(j *job) bool { return j.reader.Handler == h && j.offers })
}

func (p *pass) ran(h *dsl.Handler) bool {
	return slices.ContainsFunc(p.jobs, func(j *job) bool { return j.reader.Handler == h && j.ran })
}

// sendLament sends what a pass accumulated with the condition, or without it where the resource has no
// conditions or the server does not take it: it is not worth a pass that cannot be finished.
func (p *pass) sendLament(ctx context.Context, target patch.Target, wish patch.Wish) (patch.Result, error) {
	_, first := wish(target.Object)
	if first.Condition == nil && first.Mended == "" {
		return patch.Write(ctx, target, wish)
	}
	plain := func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		wanted, marks := wish(live)
		marks.Condition, marks.Mended = nil, ""
		return wanted, marks
	}
	keeps, err := p.r.lamentable(ctx)
	if p.memory.owes = err != nil; !keeps {
		return patch.Write(ctx, target, plain)
	}
	result, err := patch.Write(ctx, target, wish)
	if result.Status || result.Whole || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return result, err
	}
	bare, again := patch.Write(ctx, target, plain)
	if p.memory.owes = again == nil; p.memory.owes {
		p.r.unlamented(err)
	}
	return bare, again
}

// lamentable reports whether the resource has conditions, and the server took one lately.
func (r *resource) lamentable(ctx context.Context) (bool, error) {
	r.offers.mu.Lock()
	refused := time.Until(r.offers.refused) > 0
	r.offers.mu.Unlock()
	if refused {
		return false, errRefused
	}
	return r.keepsConditions(ctx)
}

// unlamented notes that the server did not take the condition.
func (r *resource) unlamented(err error) {
	r.offers.mu.Lock()
	first := r.offers.refused.IsZero()
	r.offers.refused = time.Now().Add(offersAgain)
	r.offers.mu.Unlock()
	log := r.log
	if !first || apierrors.IsForbidden(err) {
		log = log.V(1) // the right to write status is given to operators that need it, and this one works without
	}
	log.Info("objects do not say which handlers fail: the API server does not take the condition", dsl.LogWarning, true,
		"condition", handlersFailing, "error", err.Error())
}

// lamented is the condition that says which handlers fail, nil when there is none.
func (p *pass) lamented() map[string]any {
	for _, c := range conditionsOf(p.object) {
		if c["type"] == handlersFailing {
			return c
		}
	}
	return nil
}

func textOf(tree map[string]any, key string) string {
	text, _ := tree[key].(string)
	return text
}
