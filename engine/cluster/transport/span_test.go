// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestASpanEndsWithAllThatWasBegunInIt holds that what was entered is cancelled, and has ended when the span has.
func TestASpanEndsWithAllThatWasBegunInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSpan(func(context.Context) bool { return true })
		s.Begin(t.Context())
		var ended atomic.Int32
		for i := range 3 {
			ctx, done, err := s.Write(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-ctx.Done()
				time.Sleep(time.Duration(i) * time.Minute)
				ended.Add(1)
				done()
				done() // does no harm
			}()
			synctest.Wait() // so that they end one after another
		}
		begun := time.Now()
		s.End()
		if took := time.Since(begun); ended.Load() != 3 || took != 2*time.Minute {
			t.Errorf("%d have ended, after %v", ended.Load(), took)
		}
		if _, _, err := s.Enter(context.WithoutCancel(t.Context())); !errors.Is(err, context.Canceled) {
			t.Errorf("a later one gets %v", err)
		}
		if _, _, err := s.Write(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("a later write gets %v", err)
		}
	})
}

// TestAWriteThatWaitsForTheLeaderEndsWithItsSpan holds that it does so with a context that does not end, too, and that
// no one waits for it then.
func TestAWriteThatWaitsForTheLeaderEndsWithItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSpan(func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return ctx.Err() == nil
		})
		s.Begin(t.Context())
		said := make(chan error, 1)
		go func() {
			_, _, err := s.Write(context.WithoutCancel(t.Context()))
			said <- err
		}()
		synctest.Wait()
		begun := time.Now()
		s.End()
		if err := <-said; !errors.Is(err, ErrNotLeading) || time.Since(begun) > 0 {
			t.Errorf("it gets %v after %v", err, time.Since(begun))
		}
		if s.Lost() {
			t.Error("the end of the attempt counts as a loss of leadership")
		}
	})
}

// TestAnAttemptThatLostItsLeadershipSaysSo holds that an attempt which was refused a write, because the process did not lead,
// can be distinguished from one that failed for a reason of its own.
func TestAnAttemptThatLostItsLeadershipSaysSo(t *testing.T) {
	leads := true
	s := NewSpan(func(context.Context) bool { return leads })
	s.Begin(t.Context())
	defer s.End()
	if _, done, err := s.Write(t.Context()); err != nil {
		t.Errorf("a leader's write fails: %v", err)
	} else {
		done()
	}
	if s.Lost() {
		t.Error("a leader's attempt counts as lost")
	}
	leads = false
	if _, _, err := s.Write(t.Context()); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a write of a process that does not lead: %v", err)
	}
	leads = true
	if !s.Lost() {
		t.Error("the attempt does not count as lost when the process leads again")
	}
}
