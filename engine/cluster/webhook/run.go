// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/guard"
)

// shownID is how many characters the id of a panic has.
const shownID = 10

// run calls the function of a review that has its turn, and gives the turn back when the function has returned. If the
// context ends first, run returns at once.
func (s *Server) run(ctx context.Context, to *route, j job, of *request) (answer, error) {
	done := make(chan answer, 1)
	s.running.Go(func() {
		defer to.lane.gate.leave(of)
		done <- s.guarded(ctx, to, j)
	})
	select {
	case a := <-done:
		if a.result == Failed && ctx.Err() != nil { // the function gave up, which is no decision
			return answer{}, ended(ctx, nil)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, ended(ctx, nil)
	}
}

// guarded calls the function so that a panic or runtime.Goexit ends only this call. The panic is logged with an id. The answer
// has the id alone, because it goes to people who may not read the log.
func (s *Server) guarded(ctx context.Context, to *route, j job) (a answer) {
	began := time.Now()
	broke := guard.Call("webhook", func() { a = j.run(ctx) })
	if broke == nil {
		return a
	}
	id := rand.Text()[:shownID]
	log := s.set.Log.WithValues(append([]any{"id", id, "path", to.path, "uid", j.uid, "after", time.Since(began).String()}, j.about...)...)
	log.Error(broke, "webhook panicked", "stack", string(guard.Stack(broke)))
	return j.panicked(id)
}

// ended returns the error for a request whose context has ended. It is waiting if the time ended before its turn came.
func ended(ctx context.Context, waiting *refusal) error {
	cause, is := errors.AsType[*refusal](context.Cause(ctx))
	switch {
	case !is:
		return &refusal{code: errCut.code, text: "the client has gone", result: Cut}
	case cause.result == TimedOut && waiting != nil:
		return waiting
	}
	return cause
}
