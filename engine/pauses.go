// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/backoff"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/pause"
	"github.com/handwerk-dev/handwerk/engine/prune"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

const (
	// pauseKnown is how long handlers wait at the start of a term until it is known whether the operator is paused. Where the
	// account may not read that, they do not wait.
	pauseKnown = 10 * time.Second
	// rightAgain and rightAgainMost bound the wait before a missing right is asked for again.
	rightAgain     = time.Second
	rightAgainMost = time.Minute
)

// pauses brings in the pause of the operator, which is in a ConfigMap, and has all objects looked at when it begins and ends.
type pauses struct {
	engine *Engine
	board  *pause.Board
	source watch.Source
	// read is closed when the ConfigMap was read, or may not be.
	read chan struct{}
	once sync.Once

	mu sync.Mutex
	// watched is nil before the watch is open. ends is the timer of a pause with an end.
	watched *watch.Handle
	ends    *time.Timer
}

func newPauses(e *Engine) *pauses {
	p := &pauses{engine: e, board: pause.NewBoard(e.op), read: make(chan struct{})}
	p.source = watch.Source{
		GVR: prune.RegisterResource, Namespace: e.settings.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", e.op.PauseConfigMap()).String(),
	}
	return p
}

// kept reports whether the operator has a place for the ConfigMap.
func (p *pauses) kept() bool { return p.source.Namespace != "" }

// run watches the ConfigMap until ctx ends, as soon as the account may.
func (p *pauses) run(ctx context.Context) {
	if !p.kept() {
		return
	}
	defer p.end()
	var wait time.Duration
	for !p.open(ctx) {
		var in time.Duration
		wait, in = backoff.Next(wait, rightAgain, rightAgainMost)
		select {
		case <-ctx.Done():
			return
		case <-time.After(in):
		}
	}
	<-ctx.Done()
}

// open opens the watch. It reports false where that is to be tried again: the account may not watch, or nobody can say so.
func (p *pauses) open(ctx context.Context) bool {
	name := p.engine.op.PauseConfigMap()
	for _, verb := range []string{"list", "watch"} {
		allowed, err := p.engine.catalog.Allowed(ctx, authorizationv1.ResourceAttributes{
			Version: p.source.GVR.Version, Resource: p.source.GVR.Resource, Namespace: p.source.Namespace, Name: name, Verb: verb,
		})
		if err != nil {
			return false
		}
		if !allowed {
			p.settle(func() {
				p.engine.log.Info("operator cannot be paused: its account may not watch the ConfigMap that says so", logmark.Warning, true,
					"configMap", p.source.Namespace+"/"+name)
			})
			return false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.engine.watches.Open(ctx, p.source, p)
	p.watched = h
	return err == nil // otherwise the engine is closed
}

// end ends the watch.
func (p *pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched != nil {
		p.watched.Close()
	}
	if p.ends != nil {
		p.ends.Stop()
	}
}

// watchChanged is called when the state of an informer has changed.
func (p *pauses) watchChanged(src watch.Source, state watch.State) {
	if state.Synced && src.GVR == p.source.GVR && src.Namespace == p.source.Namespace && src.FieldSelector == p.source.FieldSelector {
		p.settle(func() {})
	}
}

// settle notes once that the ConfigMap was read, or may not be.
func (p *pauses) settle(say func()) {
	p.once.Do(func() {
		say()
		close(p.read)
	})
}

// await waits until it is known whether the operator is paused: no handler runs before that.
func (p *pauses) await(ctx context.Context) {
	if !p.kept() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pauseKnown)
	defer cancel()
	select {
	case <-p.read:
	case <-ctx.Done():
		return
	}
	p.mu.Lock()
	h := p.watched
	p.mu.Unlock()
	if h != nil {
		h.WaitSynced(ctx) // its events have come
	}
}

// OnEvent takes an event of the ConfigMap.
func (p *pauses) OnEvent(ev watch.Event) {
	if ev.Kind == watch.Deleted {
		p.set(nil)
		return
	}
	data, _, _ := unstructured.NestedStringMap(ev.Object.Tree().Object, "data")
	now := pause.FromData(data)
	p.set(&now)
}

// set notes a pause, or that there is none, and says so.
func (p *pauses) set(now *pause.Pause) {
	log := p.engine.log
	before := p.board.Operator()
	p.board.SetOperator(now)
	now = p.board.Operator() // nil where it has ended by itself
	p.endLater(now)
	switch {
	case now == nil && before == nil, now != nil && before != nil && *now == *before:
		return
	case now != nil:
		log.Info("operator is paused; no handler runs", "by", now.Who, "reason", now.Reason, "until", until(now), "deletionsGoOn", now.Deletions)
	default:
		p.sayResumed(*before)
	}
	p.look("")
}

// endLater has a pause end when its time comes.
func (p *pauses) endLater(now *pause.Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends != nil {
		p.ends.Stop()
		p.ends = nil
	}
	if now == nil || now.Until.IsZero() {
		return
	}
	p.ends = time.AfterFunc(time.Until(now.Until), func() {
		if p.board.Operator() == nil { // another one may have come
			p.sayResumed(*now)
			p.look("")
		}
	})
}

func (p *pauses) sayResumed(before pause.Pause) {
	p.engine.log.Info("operator is no longer paused", "by", before.Who, "reason", before.Reason)
}

// until is the end of a pause for the log.
func until(p *pause.Pause) string {
	if p.Until.IsZero() {
		return "it is resumed"
	}
	return p.Until.Format(time.RFC3339)
}

// look has the objects of a namespace looked at, or all: what came up for them is handled, or their daemons stop.
func (p *pauses) look(namespace string) {
	for r := range p.engine.resources.All {
		r.box.LookAll(namespace)
	}
}

// checks says what is paused.
func (p *pauses) checks() (out []ops.Check) {
	for _, one := range p.all() {
		out = append(out, ops.Check{Name: "paused", Message: one.String()})
	}
	return out
}

// all returns the pauses that are not those of single objects.
func (p *pauses) all() (out []pause.Pause) {
	if now := p.board.Operator(); now != nil {
		out = append(out, *now)
	}
	return out
}

// stats counts them for metrics.
func (p *pauses) stats() []ops.PauseStats {
	number := 0
	if p.board.Operator() != nil {
		number = 1
	}
	return []ops.PauseStats{{By: string(pause.Operator), Number: number}}
}

// Pauses returns what is paused: the operator. Single objects that are paused are counted by their standing.
func (e *Engine) Pauses() []pause.Pause { return e.pauses.all() }
