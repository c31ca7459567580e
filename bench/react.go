// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/bench/looks"
)

// between is the time between two changes when they come one at a time.
const between = 20 * time.Millisecond

// change is one change of a Foo: when it was sent, and what the Foo asks for since.
type change struct {
	name     string
	replicas int64
	sent     time.Time
}

// oneByOne changes one Foo after the other, at an even pace whatever the subject makes of it. It notes the processor time
// that each change took, and the time from sending it to the moment when the server got the patch of the status that
// comes of it.
func (s *session) oneByOne(ctx context.Context, sub subject, p *process, f *foos, w *follower, out take) ([]change, error) {
	ph, err := s.begin(react, p)
	if err != nil {
		return nil, err
	}
	changes, err := s.send(ctx, f, w)
	if err != nil {
		return nil, err
	}
	if err := s.reached(ctx, ph, sub, p, w, len(changes), out, f.verifyStatus); err != nil {
		return nil, err
	}
	out[react+"/cpu"] /= float64(len(changes))
	sent, err := s.plane.requested(sub.agent, ph.logged)
	if err != nil {
		return nil, err
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
	percentiles(took, react+"/answer", out)
	return changes, nil
}

// send sends the changes.
func (s *session) send(ctx context.Context, f *foos, w *follower) ([]change, error) {
	changes := make([]change, min(s.samples, f.all()))
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
		changes[i] = change{nameOf(i), replicas, time.Now()}
		sending.Go(func() {
			if err := f.scaleOne(ctx, i, replicas); err != nil {
				cancel(err)
			}
		})
	}
	sending.Wait()
	return changes, context.Cause(ctx)
}

// calls notes the time from sending a change to the call of its handler, as the subject reports it.
func calls(looks []looks.Look, changes []change, out take) {
	if len(looks) == 0 {
		return // it does not report it
	}
	type key struct {
		name     string
		replicas int64
	}
	called := map[key]int64{}
	for _, l := range slices.Backward(looks) { // the first one counts
		called[key{l.Name, l.Replicas}] = l.At
	}
	var took []time.Duration
	for _, c := range changes {
		took = append(took, time.Duration(called[key{c.name, c.replicas}]-c.sent.UnixNano()))
	}
	percentiles(took, react+"/call", out)
}

// percentiles notes the median and the 99th percentile.
func percentiles(took []time.Duration, name string, out take) {
	slices.Sort(took)
	out[name+"50"] = took[len(took)/2].Seconds()
	out[name+"99"] = took[min(len(took)-1, len(took)*99/100)].Seconds()
}
