// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// manyFailures is the failed attempt from which on a handler is said to fail where its object is looked
// at: the first ones are often over in a moment.
const manyFailures = 3

// handlersFailing is the type of the condition that says which handlers fail.
const handlersFailing = "HandlersFailing"

// fails reports whether a record is that of a handler that failed for good, or many times.
func fails(r progress.Record) bool { return r.Failed || !r.Done && r.Attempts >= manyFailures }

// complain says in the log and on the object that an attempt failed.
func (p *pass) complain(log logr.Logger, j *job, err error) {
	again := time.Until(j.record.Due).Round(time.Millisecond).String()
	switch {
	case j.record.Failed:
		log.Error(err, "handler failed for good")
	case unanswered(err) || errors.Is(err, errNotLeading):
		log.V(1).Info("handler will be tried again", "error", err.Error(), "again", again)
	case fails(j.record):
		log.Error(err, "handler will be tried again", "again", again)
	default:
		log.Info("handler will be tried again", dsl.LogWarning, true, "error", err.Error(), "again", again)
	}
	if p.whole || !fails(j.record) || !j.record.Failed && unanswered(err) {
		return // without an object there is nothing that an Event could be about, and without a server nobody who takes it
	}
	reason, note := "HandlerFailing", fmt.Sprintf("Handler %s keeps failing, and is tried again: %s", j.handler.ID, j.record.Message)
	if j.record.Failed {
		reason, note = "HandlerFailed", fmt.Sprintf("Handler %s failed for good after %d attempts: %s", j.handler.ID, j.record.Attempts, j.record.Message)
	}
	if j.cause == dsl.Delete && !j.handler.Release && !p.gone {
		reason, note = "DeletionHeld", "Deletion is held: "+strings.ToLower(note[:1])+note[1:]
	}
	p.r.engine.events.warn(p.object, j.handler.ID, reason, note)
}

// failures are the handlers of the object that fail, with the newest error of the first one, and whether
// others are about to be tried again, so that it is open whether they do.
func (p *pass) failures() (ids []string, reason, message string, open bool) {
	for _, h := range p.r.rules.handlers {
		r := p.recordOf(h)
		open = open || !r.Done && r.Attempts > 0
		if !fails(r) {
			continue
		}
		if ids = append(ids, h.ID); len(ids) == 1 {
			message = r.Message
		}
		if reason == "" || r.Failed {
			reason = "HandlerFailing"
		}
		if r.Failed {
			reason = "HandlerFailed"
		}
	}
	return ids, reason, message, open
}

// recordOf is the handler's record as this pass leaves it. Progress of one that has nothing to do any
// more is over, but not that it failed for good.
func (p *pass) recordOf(h *dsl.Handler) progress.Record {
	for _, j := range p.jobs {
		if j.handler == h {
			return j.record
		}
	}
	for _, r := range []progress.Record{p.state.Records[h.ID], p.records[h.ID]} {
		if r.Failed {
			return r
		}
	}
	return progress.Record{}
}

// lament asks for the condition that says which handlers fail, or for its end. It is written when
// another set of handlers fails than before, not for each attempt: attempts would cost requests.
func (p *pass) lament(marks *patch.Marks) {
	if p.gone || p.r.spec.Cache == dsl.CacheMetadata || len(p.r.spec.Keep) > 0 {
		return // what other conditions there are is not known
	}
	there := p.lamented()
	ids, reason, message, open := p.failures()
	by := "Operator " + p.r.engine.op.Name + ": "
	switch {
	case there != nil && (there["status"] != string(metav1.ConditionTrue) || !strings.HasPrefix(textOf(there, "message"), by)):
		return // somebody else's
	case len(ids) == 0 && there != nil && !open:
		marks.Mended = handlersFailing
	case len(ids) > 0:
		who := by + strings.Join(ids, ", ") + ": "
		if there == nil || there["reason"] != reason || !strings.HasPrefix(textOf(there, "message"), who) {
			marks.Condition = &metav1.Condition{Type: handlersFailing, Status: metav1.ConditionTrue, Reason: reason, Message: who + message}
		}
	}
}

// lamented is the condition that says which handlers fail, nil when there is none.
func (p *pass) lamented() map[string]any {
	list, _, _ := unstructured.NestedSlice(p.object.Object, "status", "conditions")
	at := slices.IndexFunc(list, func(item any) bool {
		c, is := item.(map[string]any)
		return is && c["type"] == handlersFailing
	})
	if at < 0 {
		return nil
	}
	return list[at].(map[string]any)
}

func textOf(tree map[string]any, key string) string {
	text, _ := tree[key].(string)
	return text
}

// standing is how an object stands after its last pass.
func (p *pass) standing() ops.Standing {
	out := ops.Ready
	for _, h := range p.r.rules.handlers {
		switch r := p.recordOf(h); {
		case r.Failed || !r.Done && r.Attempts > 0 && !r.Waiting:
			out = ops.Failing
		case r.Waiting && out == ops.Ready:
			out = ops.Waits
		}
	}
	if p.held {
		return ops.Held
	}
	return out
}

// standings counts the objects that this process remembers by how they stand.
func (r *resource) standings() map[ops.Standing]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[ops.Standing]int{}
	for _, e := range r.entries {
		switch {
		case e.memory == nil:
		case e.memory.failures > 0 && e.memory.standing != ops.Held:
			out[ops.Failing]++
		case e.memory.standing == "":
			// its first pass is still to come
		case e.parked && e.memory.standing == ops.Ready:
			out[ops.Waits]++
		default:
			out[e.memory.standing]++
		}
	}
	return out
}
