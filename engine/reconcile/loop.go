// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// trailClient is a client that records each version that it writes on the trail. One write of the reconcile may make two
// versions.
type trailClient struct {
	patch.Client
	walk *breaker.Walk
	// uid is the object's. handlers are the handlers whose changes are written.
	uid      types.UID
	handlers []string
}

// Patch sends a patch.
func (w trailClient) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	defer w.walk.Writing(w.uid, w.handlers...)()
	o, err := w.Client.Patch(ctx, name, kind, data, options, sub...)
	if err == nil {
		w.walk.Wrote(breaker.Version{UID: o.GetUID(), Text: o.GetResourceVersion()})
	}
	return o, err
}

// limitLoops opens the breaker of an object if its reconciles write again and again, or if its handlers undo each other
// without a write.
func (p *run) limitLoops(st State, v change) State {
	m, content, last, writes := p.memory, uint32(0), "", p.family.Writes()
	for _, w := range writes {
		if w.Cache != nil {
			content += w.Content // in any order
			last = w.Cache.Name().String() + " " + w.Key.String()
		}
	}
	if last == "" && !v.behind {
		return st
	}
	if m.Breaker == nil {
		m.Breaker = &breaker.Breaker{}
	}
	if st.Attempts.Timed(writes) {
		p.walk.Alone()
	}
	changers := st.Attempts.Changers(writes)
	wake := p.walk.Wake(changers)
	if !v.behind && st.Attempts.Driven(writes, wake.Paced) || !m.Breaker.Wrote(p.Now, content, wake.Paced && !v.behind) {
		p.Inbox.Suspend(p.Key, time.Time{})
		return st
	}
	until := p.Now.Add(m.Breaker.Wait(p.Now))
	again := p.Inbox.Suspend(p.Key, until)
	who, last, ring := strings.Join(changers, ", "), cmp.Or(last, p.Rules.Resource+" "+p.Key.String()), ""
	text := fmt.Sprintf("Handlers (%s) change this object or its children again and again without coming to rest, last %s; it is looked at again in a minute", who, last)
	if wake.Ring != nil && !v.behind {
		ring = strings.Join(wake.Ring, ", ")
		text = fmt.Sprintf("Objects follow each other again and again without coming to rest: %s; this one is looked at again in a minute", ring)
	}
	note := Note{
		Line: "object loops: its reconciles write again and again; it rests", Warning: true,
		Values: []any{"until", until.Format(time.RFC3339), "handlers", who, "written", last, "ring", ring},
		Action: "breaker", Reason: "Looping", Message: text,
	}
	if again {
		note.Warning, note.Level = false, 1 // the log has it already, and says when it is over
	}
	return st.noted(note)
}

// progressed reports whether an attempt got further: its machine moved or changed its object, or more steps and
// sub-handlers are done. Such an attempt ends a row of runs at once.
func progressed(j *Attempt) bool {
	return j.Machine != nil && (len(j.Machine.Moves) > 0 || j.Machine.Sent.Put) || j.Record.DoneParts() > j.Entry.Try.DoneParts()
}

// askedAgain returns the time after which a handler asks to run again. Asks is false if it does not.
func askedAgain(j *Attempt, now time.Time) (after time.Duration, asks bool) {
	if asks = !j.Record.Done; asks {
		after = j.Record.Remaining(now)
	}
	if j.Again != nil && (!asks || *j.Again < after) {
		return *j.Again, true
	}
	return after, asks
}

// slow makes a handler wait for a second if it asks to run at once again and again, without an event from outside.
func (p *run) slow(st State, j *Attempt, before progress.Record, now time.Time) State {
	if progressed(j) {
		return st
	}
	id := j.Reader.ID
	after, asks := askedAgain(j, now)
	if !asks {
		delete(p.memory.Rows, id)
		return st
	}
	row := p.memory.Rows[id]
	if row > 0 && p.walk.Outside() {
		row = 0
	}
	row, wait, slowed := row.Ask(after, AtOnce(after))
	p.memory.Row(id, row)
	if wait == after {
		return st
	}
	if j.Again != nil {
		j.Again, j.Slowed = new(max(*j.Again, wait)), true
	}
	j.Record = j.Record.Later(now.Add(wait))
	if slowed {
		note := Note{About: attempt.About{Handler: id, Cause: j.Cause, Attempt: before.Attempts + 1}, Line: "handler asks to run at once again and again; it waits a second each time", Warning: true}
		note.Action, note.Reason = id, "Looping"
		note.Message = fmt.Sprintf("Handler %s asks to run at once again and again; it waits a second each time, until somebody else changes something", id)
		st = st.noted(note)
	}
	return st
}

// Driven reports whether all writes of the reconcile follow time, children or related objects (see [breaker.Wake]). For
// children and related objects, they may change only the object's status. That is no loop: a heartbeat follows the clock,
// and a status follows the Pods of a roll-out.
func (js Attempts) Driven(writes []children.Write, paced bool) bool {
	return !slices.ContainsFunc(js, func(j *Attempt) bool {
		if paced && j.Cause.FromOthers() {
			return j.writes(writes) || j.Wants != nil && len(j.Wants.Object)+len(j.Wants.Transforms) > 0
		}
		return !j.timed() && j.Ran && (j.writes(writes) || j.Asks())
	})
}

// Timed reports whether the reconcile wrote only because a time had come.
func (js Attempts) Timed(writes []children.Write) bool {
	return !slices.ContainsFunc(js, func(j *Attempt) bool { return !j.timed() && j.Ran && (j.writes(writes) || j.Asks()) })
}

// timed reports whether a time was the handler's cause, and not its own request to run at once.
func (j *Attempt) timed() bool { return j.Cause.FromClock() && !j.Soon }

// writes reports whether some of these writes are the handler's.
func (j *Attempt) writes(all []children.Write) bool {
	return slices.ContainsFunc(all, func(w children.Write) bool { return w.Handler == j.Reader.ID })
}

// Changers returns the handlers that have changed the object or its children.
func (js Attempts) Changers(writes []children.Write) (out []string) {
	for _, j := range js {
		if j.Asks() || slices.ContainsFunc(writes, func(w children.Write) bool { return w.Child && w.Handler == j.Reader.ID }) {
			out = append(out, j.Reader.ID)
		}
	}
	return out
}
