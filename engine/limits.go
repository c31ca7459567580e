// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const (
	// recordPeriod is the least time between two writes of the record of waiting deletions.
	recordPeriod = time.Minute
	// recordDelay is the wait after a change: deletions that begin to wait together are logged and recorded together.
	recordDelay = time.Second
	// readAgainMost bounds the wait before a record that could not be read is read again.
	readAgainMost = 10 * time.Second
	// settingsLimits is the key of the limits that resources share.
	settingsLimits = "settings"
)

// deletionLimits are the limits of an operator. Each resource has limits of its own, or shares those of the settings. A
// ConfigMap keeps the waiting deletions for the next leader, and has the releases by people.
type deletionLimits struct {
	engine *Engine
	// all are the limits, by the resource or [settingsLimits].
	all     map[string]*limits.Deletions
	changed chan struct{}
	// recorded: the operator has a namespace for the ConfigMap, and a resource that deletes.
	recorded bool

	// begin and the goroutine of keep alone use the next three fields.
	// last is the record that the ConfigMap has.
	last map[string]limits.Record
	// logged are the deletions that are held, as the log has them.
	logged map[held]bool
	// unreadable is why a part of the ConfigMap cannot be read, as the log has it; empty if it can.
	unreadable string

	mu sync.Mutex
	// trouble is why the ConfigMap cannot be read or written; nil if it can.
	trouble error
}

// held identifies the held deletions of a pool with one cause.
type held struct {
	limits.Pool
	cause limits.Cause
}

func newDeletionLimits(e *Engine) *deletionLimits {
	d := &deletionLimits{engine: e, all: map[string]*limits.Deletions{}, changed: make(chan struct{}, 1), logged: map[held]bool{}}
	d.recorded = e.settings.Namespace != "" && slices.ContainsFunc(e.op.Handled(), (*dsl.Resource).Deletes)
	d.all[settingsLimits] = limits.New(e.op.Settings.Limits.Deletions, d.changed)
	for _, r := range e.op.Handled() {
		if r.Limits != nil {
			d.all[r.Name.String()] = limits.New(r.Limits.Deletions, d.changed)
		}
	}
	return d
}

// of returns the limits of a resource.
func (d *deletionLimits) of(r *dsl.Resource) *limits.Deletions {
	if own := d.all[r.Name.String()]; own != nil {
		return own
	}
	return d.all[settingsLimits]
}

// begin begins a term, and keeps the record until end is called. The record of the process that led before is read
// meanwhile, so that the start does not wait for it. No deletion begins before it is known.
func (d *deletionLimits) begin(leads context.Context) (end func()) {
	for _, of := range d.all {
		of.Await()
	}
	if !d.recorded {
		d.know(limits.Contents{}, false)
	}
	ctx, stop := context.WithCancel(leads)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		if d.recorded {
			found, recorded := d.read(ctx)
			if ctx.Err() != nil {
				return
			}
			d.know(found, recorded)
		}
		d.keep(ctx)
	})
	return func() {
		stop()
		keeping.Wait()
	}
}

// know lets deletions begin, by the record of the process that led before.
func (d *deletionLimits) know(found limits.Contents, recorded bool) {
	d.last = found.Records
	d.release(found.Releases)
	for name, of := range d.all {
		d.wake(of.Begin(found.Records[name], recorded, time.Now()))
	}
}

// read reads the ConfigMap, until it is known or ctx ends: while the API server does not answer, nothing can be deleted.
// Recorded is false if the ConfigMap cannot be written, as far as is known.
func (d *deletionLimits) read(ctx context.Context) (out limits.Contents, recorded bool) {
	for wait := time.Duration(0); ; {
		o, err := d.client().Get(ctx, d.engine.op.LimitsConfigMap(), metav1.GetOptions{})
		switch {
		case err == nil:
			return d.parse(o), true
		case apierrors.IsNotFound(err):
			return out, true
		}
		if d.fails(err); apierrors.IsForbidden(err) {
			return out, false
		}
		var in time.Duration
		wait, in = backoff.Next(wait, time.Second, readAgainMost)
		select {
		case <-ctx.Done():
			return out, true
		case <-time.After(in):
		}
	}
}

// client reaches the ConfigMaps of the operator's namespace. Its requests need no right beside the optional one.
func (d *deletionLimits) client() dynamic.ResourceInterface {
	return d.engine.clients.Dynamic.Resource(prune.RegisterResource).Namespace(d.engine.settings.Namespace)
}

// parse reads the contents of the ConfigMap. It logs once what it cannot read.
func (d *deletionLimits) parse(o *unstructured.Unstructured) limits.Contents {
	data, _, err := unstructured.NestedStringMap(o.Object, "data")
	var out limits.Contents
	if err == nil {
		out, err = limits.ParseContents(data)
	}
	before := d.unreadable
	if d.unreadable = ""; err != nil {
		d.unreadable = err.Error()
	}
	if err != nil && d.unreadable != before {
		d.engine.log.Error(err, "record of waiting deletions cannot be read; it counts as empty", "object", o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// keep logs the waiting deletions, and keeps the ConfigMap up to date, until ctx ends. At most once a minute, it writes
// the waiting deletions and reads the releases. Once no deletion waits and the ConfigMap says so, it sends no requests.
func (d *deletionLimits) keep(ctx context.Context) {
	var last time.Time
	write := time.NewTimer(recordPeriod)
	defer write.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
			select {
			case <-ctx.Done():
				return
			case <-time.After(recordDelay):
			}
			d.log()
			write.Reset(max(time.Until(last.Add(recordPeriod)), 0))
		case <-write.C:
			last = time.Now()
			d.log()
			if again := d.write(ctx); again {
				write.Reset(recordPeriod)
			}
		}
	}
}

// write writes the waiting deletions to the ConfigMap. It does nothing if none wait and the ConfigMap has none. It
// reports whether it has to be called again, because deletions wait or the request has failed.
func (d *deletionLimits) write(ctx context.Context) (again bool) {
	now, records := time.Now(), map[string]limits.Record{}
	for name, of := range d.all {
		if r := of.Record(now); !r.Empty() {
			records[name] = r
		}
	}
	if len(records) == 0 && len(d.last) == 0 {
		return false
	}
	absent := !d.recorded
	var found limits.Contents
	if !absent {
		var err error
		found, err = d.apply(ctx, records)
		d.fails(err)
		if absent = apierrors.IsForbidden(err); err != nil && !absent {
			return true
		}
	}
	d.last = records
	for name, of := range d.all {
		d.wake(of.Recorded(records[name], absent))
	}
	if !absent {
		d.release(found.Releases)
	}
	return len(records) > 0
}

// apply applies the operator's part of the ConfigMap, and returns the whole contents.
func (d *deletionLimits) apply(ctx context.Context, records map[string]limits.Record) (out limits.Contents, err error) {
	namespace, name := d.engine.settings.Namespace, d.engine.op.LimitsConfigMap()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name},
	}}
	if len(records) > 0 {
		text, err := json.Marshal(records)
		if err != nil {
			return out, err
		}
		o.Object["data"] = map[string]any{limits.WaitingKey: string(text)}
	}
	written, err := d.client().Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: d.engine.op.Name, Force: true})
	if err != nil {
		return out, fmt.Errorf("recording deletions that wait: %w", err)
	}
	return d.parse(written), nil
}

// fails notes why the ConfigMap cannot be read or written, and logs it once. Nil: it can.
func (d *deletionLimits) fails(err error) {
	d.mu.Lock()
	before := d.trouble
	d.trouble = err
	d.mu.Unlock()
	switch {
	case err != nil && before == nil && !d.engine.faults.Logged(err):
		d.engine.log.Info("deletions that wait are not recorded: a restart forgets them, and operator release does not reach this process",
			logmark.Warning, true, "error", err.Error())
	case err == nil && before != nil:
		d.engine.log.Info("deletions that wait are recorded again")
	}
}

// log logs deletions that are held, and deletions that are no longer held, once for each pool and cause.
func (d *deletionLimits) log() {
	now := map[held]bool{}
	for _, g := range d.waiting() {
		if g.Reason != limits.ShareExceeded {
			continue
		}
		one := held{g.Pool, g.Cause}
		if now[one] = true; !d.logged[one] {
			d.engine.log.Info("deletions are held: operator release lets them go", logmark.Warning, true, "resource", g.Resource, "kind", g.Kind,
				"cause", string(g.Cause), "number", g.Count, "of", g.All, "namespaces", g.Namespaces)
		}
	}
	for one := range d.logged {
		if !now[one] {
			d.engine.log.Info("deletions are no longer held", "resource", one.Resource, "kind", one.Kind, "cause", string(one.cause))
		}
	}
	d.logged = now
}

// release passes the releases by people to the limits, logs new ones, and queues the objects that they concern.
func (d *deletionLimits) release(all []limits.Release) {
	logged := map[limits.Release]bool{}
	for _, name := range slices.Sorted(maps.Keys(d.all)) {
		fresh, wakes := d.all[name].Release(all, time.Now())
		for _, r := range fresh {
			if !logged[r] {
				d.engine.log.Info("deletions are released", "resource", r.Resource, "cause", string(r.Cause), "by", r.By, "until", r.Until.Format(time.RFC3339))
			}
			logged[r] = true
		}
		d.wake(wakes)
	}
}

// wake queues objects whose deletions may begin.
func (d *deletionLimits) wake(all []limits.Wake) {
	for r := range d.engine.resources.All {
		for _, w := range all {
			if w.Resource == r.name {
				r.inbox.Retry(inbox.Key(w.Key), w.Handler)
			}
		}
	}
}

// namespaceEnds notes whether a namespace is being deleted.
func (d *deletionLimits) namespaceEnds(namespace string, ends bool) {
	for _, of := range d.all {
		of.NamespaceEnds(namespace, ends)
	}
}

// waiting returns the deletions that wait, in groups.
func (d *deletionLimits) waiting() (out []limits.Group) {
	for _, name := range slices.Sorted(maps.Keys(d.all)) {
		out = append(out, d.all[name].Waiting(time.Now())...)
	}
	return out
}

// checks returns a check for each group of deletions that wait, and one if they are not recorded.
func (d *deletionLimits) checks() (out []ops.Check) {
	d.mu.Lock()
	trouble := d.trouble
	d.mu.Unlock()
	waiting := d.waiting()
	if trouble != nil && len(waiting) > 0 {
		out = append(out, ops.Check{Name: "deletions", State: ops.Warn, Message: trouble.Error()})
	}
	for _, g := range waiting {
		check := ops.Check{Name: "deletions/" + g.Resource + "/" + g.Kind + "/" + string(g.Cause), Message: g.String()}
		if g.Reason == limits.ShareExceeded {
			check.State = ops.Warn
		}
		out = append(out, check)
	}
	return out
}

// stats counts the deletions that wait for metrics.
func (d *deletionLimits) stats() (out []ops.DeletionStats) {
	for _, g := range d.waiting() {
		out = append(out, ops.DeletionStats{Resource: g.Resource, Kind: g.Kind, Cause: string(g.Cause), Reason: string(g.Reason), Number: g.Count})
	}
	return out
}
