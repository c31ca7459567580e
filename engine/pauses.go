// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// pauseKnown is how long handlers wait at the start of a term until pauses are known. They do not wait for watches
// without the right.
const pauseKnown = 10 * time.Second

// pauses watches for pauses beside those of single objects. A ConfigMap with the operator's name, or an earlier one,
// pauses the operator. An annotation pauses a namespace. When a pause begins or ends, its objects get a reconcile.
type pauses struct {
	engine *Engine
	board  *pause.Board
	// watches are the watches.
	watches []*pauseWatch

	mu sync.Mutex
	// said is the operator's pause in the last log line, nil for none. ends is the timer for its end.
	said *pause.Pause
	ends *time.Timer
}

func newPauses(e *Engine) *pauses {
	p := &pauses{engine: e, board: pause.NewBoard(e.op)}
	if e.settings.Namespace == "" {
		return p
	}
	for _, name := range e.op.PauseConfigMaps() {
		p.watches = append(p.watches, &pauseWatch{
			engine: e, name: name, on: p.operatorSeen, forget: func() { p.forget(name) }, tried: make(chan struct{}),
			lacks: "operator cannot be paused: its account may not watch the ConfigMap that says so",
			source: watch.Source{
				GVR: prune.RegisterResource, Namespace: e.settings.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
				Form: cached.Form{}.WithDefaults(),
			},
		})
	}
	return p
}

// watchNamespaces adds the watch of namespaces. An operator that works in namespaces by name has no right to it.
func (p *pauses) watchNamespaces() {
	if e := p.engine; e.op.Scope.Everywhere() || e.sources.Scope().Live() {
		p.watches = append(p.watches, &pauseWatch{
			engine: e, on: p.namespaceSeen, tried: make(chan struct{}),
			lacks:  "namespaces cannot be paused: the account may not watch them",
			source: e.sources.Namespaces(),
		})
	}
}

// run watches until ctx ends.
func (p *pauses) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range p.watches {
		running.Go(func() { s.run(ctx) })
	}
	running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLater(nil)
}

// watchChanged handles a change of an informer's state.
func (p *pauses) watchChanged(src watch.Source, state watch.State) {
	for _, s := range p.watches {
		if src == s.source {
			s.forbidden.Store(apierrors.IsForbidden(state.Fault))
		}
	}
}

// await waits until pauses are known. No handler runs before.
func (p *pauses) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pauseKnown)
	defer cancel()
	for _, s := range p.watches {
		s.await(ctx)
	}
}

// operatorSeen handles an event of a ConfigMap.
func (p *pauses) operatorSeen(ev watch.Event) {
	if ev.Kind == watch.Deleted {
		p.board.SetOperator(ev.Key.Name, nil)
	} else {
		data, _, _ := unstructured.NestedStringMap(ev.Object.Tree().Object, "data")
		p.board.SetOperator(ev.Key.Name, new(pause.FromData(data)))
	}
	p.operatorChanged()
}

// forget drops the pause of a ConfigMap.
func (p *pauses) forget(name string) {
	p.board.SetOperator(name, nil)
	p.operatorChanged()
}

// operatorChanged logs that a pause of the operator began or ended, and queues all objects.
func (p *pauses) operatorChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, now := p.said, p.board.Operator()
	p.said = now
	p.endLater(now)
	switch {
	case now == nil && before == nil, now != nil && before != nil && *now == *before:
		return
	case now != nil:
		log := p.engine.log
		if now.Was != "" {
			log = log.WithValues("earlierName", now.Was)
		}
		log.Info("operator is paused; no handler runs", "by", now.Who, "reason", now.Reason, "until", until(now), "deletionsGoOn", now.Deletions)
	default:
		p.engine.log.Info("operator is no longer paused", "by", before.Who, "reason", before.Reason)
	}
	p.look("")
}

// endLater ends a pause of the operator when its time comes. The lock is held.
func (p *pauses) endLater(now *pause.Pause) {
	if p.ends != nil {
		p.ends.Stop()
		p.ends = nil
	}
	if now != nil && !now.Until.IsZero() {
		p.ends = time.AfterFunc(time.Until(now.Until), p.operatorChanged)
	}
}

// until returns the end of a pause for the log.
func until(p *pause.Pause) string {
	if p.Until.IsZero() {
		return "it is resumed"
	}
	return p.Until.Format(time.RFC3339)
}

// namespaceSeen handles an event of a namespace.
func (p *pauses) namespaceSeen(ev watch.Event) {
	annotations := ev.Object.GetAnnotations()
	if ev.Kind == watch.Deleted {
		annotations = nil
	}
	p.engine.limits.namespaceEnds(ev.Key.Name, ev.Kind != watch.Deleted && ev.Object.GetDeletionTimestamp() != nil)
	before, now := p.board.SetNamespace(ev.Key.Name, annotations)
	log := p.engine.log.WithValues("namespace", ev.Key.Name)
	switch {
	case now == nil && before == nil, now != nil && before != nil && *now == *before:
		return
	case now != nil:
		log.Info("namespace is paused; no handler runs for its objects", "reason", now.Reason, "deletionsGoOn", now.Deletions)
	default:
		log.Info("namespace is no longer paused", "reason", before.Reason)
	}
	p.look(ev.Key.Name)
}

// look queues the objects of a namespace, or all. Their changes are handled, or their daemons stop.
func (p *pauses) look(namespace string) {
	for r := range p.engine.resources.All {
		r.daemons.PauseAll() // workers may be busy for long
		r.inbox.EnqueueAll(namespace)
	}
}

// namedPauses is how many namespaces /readyz?verbose names.
const namedPauses = 20

// checks returns the checks for pauses, and for watches whose right is missing.
func (p *pauses) checks() (out []ops.Check) {
	for _, s := range p.watches {
		if s.lost.Load() {
			out = append(out, ops.Check{Name: "pauses", Message: s.lacks})
		}
	}
	for _, one := range p.all() {
		name := "paused"
		if one.Namespace != "" {
			name += "/namespace/" + one.Namespace
		}
		if len(out) <= namedPauses {
			out = append(out, ops.Check{Name: name, Message: one.String()})
		}
	}
	return out
}

// all returns the pauses of the operator and of namespaces.
func (p *pauses) all() (out []pause.Pause) {
	if now := p.board.Operator(); now != nil {
		out = append(out, *now)
	}
	return append(out, p.board.Namespaces()...)
}

// stats counts the pauses for metrics.
func (p *pauses) stats() []ops.PauseStats {
	of := map[pause.By]int{}
	for _, one := range p.all() {
		of[one.By]++
	}
	return []ops.PauseStats{{By: string(pause.Operator), Number: of[pause.Operator]}, {By: string(pause.Namespace), Number: of[pause.Namespace]}}
}

// Pauses returns the pauses of the operator and of namespaces. Paused objects are counted by their health.
func (e *Engine) Pauses() []pause.Pause { return e.pauses.all() }
