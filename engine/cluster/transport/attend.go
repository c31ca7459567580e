// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// askEvery is the mean time between two questions whether the server is back.
const askEvery = time.Second

// Attend asks about once a second whether the server is back while requests fail, for the whole process, until ctx ends. After an outage
// that was logged, it calls back when the server answers, so that waiting keys go on at once. A server that has just come back may
// refuse what it will allow later, so back is called again when ask has no error any more.
func (w *Outages) Attend(ctx context.Context, ask func(context.Context) error, back func()) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-w.turned:
			if w.await(ctx, ask) {
				back()
				w.welcome(ctx, ask, back)
				w.pause(ctx, nil, nil) // a server that comes and goes does not have all try again each time
				w.drain()
			}
		}
	}
}

// await asks until the server gives any answer. It reports whether the outage was long enough to be logged.
func (w *Outages) await(ctx context.Context, ask func(context.Context) error) (outage bool) {
	var err error
	for ctx.Err() == nil {
		down, logged := w.down()
		if outage = outage || logged; !down {
			return outage
		}
		w.pause(ctx, err, w.turned)
		if down, _ = w.down(); down && ctx.Err() == nil {
			err = ask(ctx)
		}
	}
	return false
}

// welcome asks a server that answers again until it is ready, is away again, or has had time enough to become ready.
func (w *Outages) welcome(ctx context.Context, ask func(context.Context) error, back func()) {
	begun, late := time.Now(), false
	for ctx.Err() == nil && time.Since(begun) < reopening {
		err := ask(ctx)
		if down, _ := w.down(); down {
			w.turn()
			return
		}
		if err == nil {
			if late {
				back()
			}
			return
		}
		late = true
		w.pause(ctx, err, w.turned)
	}
}

// pause waits before the next question, at most until something turns. It waits longer if the server has asked for that.
func (w *Outages) pause(ctx context.Context, last error, turned <-chan struct{}) {
	wait := askEvery*3/4 + rand.N(askEvery/2)
	if seconds, asked := apierrors.SuggestsClientDelay(last); asked {
		wait, turned = max(wait, min(time.Duration(seconds)*time.Second, reopening)), nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-turned:
	case <-ctx.Done():
	}
}

// down reports whether the last request to the server failed, and whether the outage is logged.
func (w *Outages) down() (down, logged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lost[everything]
	return s != nil && s.end == nil, s != nil && s.logged
}

// drain forgets turns that are known already.
func (w *Outages) drain() {
	select {
	case <-w.turned:
	default:
	}
	if down, _ := w.down(); down {
		w.turn()
	}
}

// turn notes that requests begin to fail, or get answers again.
func (w *Outages) turn() {
	select {
	case w.turned <- struct{}{}:
	default:
	}
}
