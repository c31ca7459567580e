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

// pauseKnown is how long handlers wait at the start of a term until it is known what is paused. What the account may not see
// they do not wait for.
const pauseKnown = 10 * time.Second

// pauses brings in what is paused beside single objects: the operator, by a ConfigMap of its name or of an earlier one, and namespaces, by an annotation. When a
// pause begins or ends, the objects are looked at.
type pauses struct {
	engine *Engine
	board  *pause.Board
	// sights are what is watched for them.
	sights []*pauseSight

	mu sync.Mutex
	// said is the pause of the operator that the log has last named, nil for none; ends is the timer for its end.
	said *pause.Pause
	ends *time.Timer
}

func newPauses(e *Engine) *pauses {
	p := &pauses{engine: e, board: pause.NewBoard(e.op)}
	if e.settings.Namespace == "" {
		return p
	}
	for _, name := range e.op.PauseConfigMaps() {
		p.sights = append(p.sights, &pauseSight{
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

// watchNamespaces has namespaces watched, too. An operator that works in namespaces by name has its rights there alone.
func (p *pauses) watchNamespaces() {
	if e := p.engine; e.op.Scope.Everywhere() || e.feeds.Scope().Live() {
		p.sights = append(p.sights, &pauseSight{
			engine: e, on: p.namespaceSeen, tried: make(chan struct{}),
			lacks:  "namespaces cannot be paused: the account may not watch them",
			source: e.feeds.Namespaces(),
		})
	}
}

// run watches until ctx ends.
func (p *pauses) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range p.sights {
		running.Go(func() { s.run(ctx) })
	}
	running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLater(nil)
}

// watchChanged is called when the state of an informer has changed.
func (p *pauses) watchChanged(src watch.Source, state watch.State) {
	for _, s := range p.sights {
		if src == s.source {
			s.forbidden.Store(apierrors.IsForbidden(state.Fault))
		}
	}
}

// await waits until it is known what is paused: no handler runs before that.
func (p *pauses) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pauseKnown)
	defer cancel()
	for _, s := range p.sights {
		s.await(ctx)
	}
}

// operatorSeen takes an event of a ConfigMap.
func (p *pauses) operatorSeen(ev watch.Event) {
	if ev.Kind == watch.Deleted {
		p.board.SetOperator(ev.Key.Name, nil)
	} else {
		data, _, _ := unstructured.NestedStringMap(ev.Object.Tree().Object, "data")
		p.board.SetOperator(ev.Key.Name, new(pause.FromData(data)))
	}
	p.operatorChanged()
}

// forget drops what a ConfigMap says.
func (p *pauses) forget(name string) {
	p.board.SetOperator(name, nil)
	p.operatorChanged()
}

// operatorChanged says that the operator is paused, or is not any more, and has all objects looked at.
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

// endLater has a pause of the operator end when its time comes. The lock is held.
func (p *pauses) endLater(now *pause.Pause) {
	if p.ends != nil {
		p.ends.Stop()
		p.ends = nil
	}
	if now != nil && !now.Until.IsZero() {
		p.ends = time.AfterFunc(time.Until(now.Until), p.operatorChanged)
	}
}

// until is the end of a pause for the log.
func until(p *pause.Pause) string {
	if p.Until.IsZero() {
		return "it is resumed"
	}
	return p.Until.Format(time.RFC3339)
}

// namespaceSeen takes an event of a namespace.
func (p *pauses) namespaceSeen(ev watch.Event) {
	annotations := ev.Object.GetAnnotations()
	if ev.Kind == watch.Deleted {
		annotations = nil
	}
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

// look has the objects of a namespace looked at, or all: what came up for them is handled, or their daemons stop.
func (p *pauses) look(namespace string) {
	for r := range p.engine.resources.All {
		r.daemons.PauseAll() // workers may be busy for long
		r.box.LookAll(namespace)
	}
}

// namedPauses is how many namespaces /readyz?verbose names.
const namedPauses = 20

// checks says what is paused, and what the account may not watch any more.
func (p *pauses) checks() (out []ops.Check) {
	for _, s := range p.sights {
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

// all returns the pauses that are not those of single objects.
func (p *pauses) all() (out []pause.Pause) {
	if now := p.board.Operator(); now != nil {
		out = append(out, *now)
	}
	return append(out, p.board.Namespaces()...)
}

// stats counts them for metrics.
func (p *pauses) stats() []ops.PauseStats {
	of := map[pause.By]int{}
	for _, one := range p.all() {
		of[one.By]++
	}
	return []ops.PauseStats{{By: string(pause.Operator), Number: of[pause.Operator]}, {By: string(pause.Namespace), Number: of[pause.Namespace]}}
}

// Pauses returns what is paused: the operator and namespaces. Single objects that are paused are counted by their standing.
func (e *Engine) Pauses() []pause.Pause { return e.pauses.all() }
