// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/breaker"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// begin begins the pass on the engine's trail, woken by what has come up.
func (p *run) begin(news inbox.Changes) *breaker.Walk {
	m, uid := p.memory, p.object.GetUID()
	m.Woken = m.Woken.Next(news.Woken)
	about := breaker.Subject{
		UID: uid, Resource: p.r.name, Key: types.NamespacedName{Namespace: p.key.Namespace, Name: p.key.Name}, Woken: m.Woken.Versions,
	}
	if news.Event != "" {
		about.Own = breaker.Version{UID: uid, Text: p.object.GetResourceVersion()}
	}
	return p.r.engine.trail.Begin(about)
}

// walked is a client that notes each version which it writes on a walk; one write of the pass may make two versions.
type walked struct {
	patch.Client
	walk *breaker.Walk
	// uid is the object's, and handlers are those whose changes are written.
	uid      types.UID
	handlers []string
}

// Patch sends a patch.
func (w walked) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	defer w.walk.Writing(w.uid, w.handlers...)()
	o, err := w.Client.Patch(ctx, name, kind, data, options, sub...)
	if err == nil {
		w.walk.Wrote(breaker.Version{UID: o.GetUID(), Text: o.GetResourceVersion()})
	}
	return o, err
}

// brake holds an object back when its passes write again and again, or its handlers undo each other without
// a write.
func (p *run) brake(a account) {
	m, content, last := p.memory, uint32(0), ""
	for _, w := range a.writes {
		if w.Cache != nil {
			content += w.Content // in any order
			last = w.Cache.Name().String() + " " + w.Key.String()
		}
	}
	if last == "" && !a.behind {
		return
	}
	if m.Breaker == nil {
		m.Breaker = &breaker.Breaker{}
	}
	if a.jobs.Timed(a.writes) {
		p.walk.Alone()
	}
	changers := a.jobs.Changers(a.writes)
	wake := p.walk.Wake(changers)
	if !a.behind && a.jobs.Driven(a.writes, wake.Paced) || !m.Breaker.Wrote(p.now, content, wake.Paced && !a.behind) {
		p.r.box.Suspend(p.key, time.Time{})
		return
	}
	until := p.now.Add(m.Breaker.Wait(p.now))
	p.r.box.Suspend(p.key, until)
	who, last, ring := strings.Join(changers, ", "), cmp.Or(last, p.r.name+" "+p.key.String()), ""
	note := fmt.Sprintf("Handlers (%s) change this object or its children again and again without coming to rest, last %s; it is looked at again in a minute", who, last)
	if wake.Ring != nil && !a.behind {
		ring = strings.Join(wake.Ring, ", ")
		note = fmt.Sprintf("Objects follow each other again and again without coming to rest: %s; this one is looked at again in a minute", ring)
	}
	p.log().Info("object loops: its passes write again and again; it rests", logmark.Warning, true,
		"until", until.Format(time.RFC3339), "handlers", who, "written", last, "ring", ring)
	p.r.engine.events.Warn(p.object, "breaker", "Looping", note)
}

// progressed reports whether a run got on: its machine has moved or put something on its object, or more of its steps and
// sub-handlers are done than before. Such a run does not count as one of a row.
func progressed(j *pass.Job) bool {
	return j.Machine != nil && (len(j.Machine.Moves) > 0 || j.Machine.Sent.Put) || j.Record.Past() > j.Entry.Try.Past()
}

// asked returns the time after which a handler asks to run again; asks is false where it does not.
func asked(j *pass.Job, now time.Time) (after time.Duration, asks bool) {
	if asks = !j.Record.Done; asks {
		after = j.Record.Waits(now)
	}
	if j.Again != nil && (!asks || *j.Again < after) {
		return *j.Again, true
	}
	return after, asks
}

// slow makes a handler wait for a second that asks to run at once again and again, without an event from outside.
func (p *run) slow(log logr.Logger, j *pass.Job, now time.Time) {
	if progressed(j) {
		return
	}
	id := j.Reader.ID
	after, asks := asked(j, now)
	if !asks {
		p.memory.Row(id, 0)
		return
	}
	row := p.memory.Rows[id]
	if row > 0 && p.walk.Outside() {
		row = 0
	}
	row, wait, slowed := row.Ask(after, pass.AtOnce(after))
	p.memory.Row(id, row)
	if wait == after {
		return
	}
	if j.Again != nil {
		j.Again = new(max(*j.Again, wait))
	}
	j.Record = j.Record.Later(now.Add(wait))
	if slowed {
		log.Info("handler asks to run at once again and again; it waits a second each time", logmark.Warning, true)
		if !p.resourceWide() {
			p.r.engine.events.Warn(p.object, id, "Looping", fmt.Sprintf(
				"Handler %s asks to run at once again and again; it waits a second each time, until somebody else changes something", id))
		}
	}
}
