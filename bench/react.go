// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// between is the time between two changes when they come one at a time.
const between = 20 * time.Millisecond

// change is one change of a Foo, and when it was sent.
type change struct {
	name string
	sent time.Time
}

// react changes one Foo after the other, at an even pace whatever the subject makes of it. It notes the processor time
// that each change took, and the time from sending it to the moment when the server got the patch of the status that
// comes of it.
func (t *trial) react(ctx context.Context, p *process, f *foos, w *follower) error {
	ph, err := t.begin("react", p)
	if err != nil {
		return err
	}
	changes, err := t.send(ctx, f, w)
	if err != nil {
		return err
	}
	if err := t.reached(ctx, ph, p, w, len(changes), f.verifyStatus); err != nil {
		return err
	}
	t.out["react/cpu"] /= float64(len(changes))
	sent, err := t.plane.requested(t.sub.agent, ph.logged)
	if err != nil {
		return err
	}
	at := map[string]time.Time{}
	for _, r := range slices.Backward(writes(sent)) { // the first one counts
		if r.ObjectRef.Resource == "foos" {
			at[r.ObjectRef.Name] = r.RequestReceivedTimestamp
		}
	}
	var took []time.Duration
	for _, c := range changes {
		took = append(took, at[c.name].Sub(c.sent))
	}
	slices.Sort(took)
	t.out["react/median"] = took[len(took)/2].Seconds()
	t.out["react/99th"] = took[len(took)*99/100].Seconds()
	return nil
}

// send sends the changes.
func (t *trial) send(ctx context.Context, f *foos, w *follower) ([]change, error) {
	changes := make([]change, t.samples())
	clock := time.NewTicker(between)
	defer clock.Stop()
	var sending sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range changes {
		select {
		case <-clock.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		replicas := 1 + f.asked[i]%most
		w.wants(nameOf(i), replicas)
		changes[i] = change{nameOf(i), time.Now()}
		sending.Go(func() {
			if err := f.scaleOne(ctx, i, replicas); err != nil {
				cancel(err)
			}
		})
	}
	sending.Wait()
	return changes, context.Cause(ctx)
}
