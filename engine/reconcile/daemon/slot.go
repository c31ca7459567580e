// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// betweenChanges is the shortest time between the starts of two runs if a change ends the wait between them. Otherwise a
// daemon that changes its object with its client would run all the time.
const betweenChanges = time.Second

// slot is one daemon of one object from its start to its end: its goroutine, the waits between its runs, and its stop.
type slot struct {
	id
	manager *Manager
	runner  *runner
	object  *object
	// cancel ends the context of the daemon's code. cut ends the context of its writes.
	cancel context.CancelCauseFunc
	cut    context.CancelFunc

	// The lock of the manager guards these fields. why is why the daemon must stop, and since when; empty while it may
	// run. timer ends its time to stop. late: that is over, and the daemon still runs.
	why   dsl.Stop
	since time.Time
	timer *time.Timer
	late  bool
	// over: the daemon does not run again for the object.
	over, ended bool
	// again ends the daemon's wait for its next run; nil while it does not wait.
	again context.CancelFunc
}

// newSlot returns a daemon in the manager's term. Nothing runs yet.
func newSlot(m *Manager, o *object, memo *dsl.Memo) *slot {
	s := &slot{id: o.id, manager: m, object: o}
	s.runner = &runner{settings: &m.settings, id: o.id, object: o, memo: memo}
	s.runner.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(m.term))
	s.runner.limit, s.cut = context.WithCancel(context.WithoutCancel(m.term))
	return s
}

// stopLocked asks the daemon to stop. Only the first call has an effect.
func (s *slot) stopLocked(why dsl.Stop) {
	if s.why != "" || s.ended {
		return
	}
	s.why, s.since = why, time.Now()
	s.cancel(why)
	within := cmp.Or(s.handler.Daemon.StopWithin, s.manager.settings.Grace)
	s.timer = time.AfterFunc(within, func() { s.overstay(within) })
}

// overstay handles the end of the time to stop.
func (s *slot) overstay(within time.Duration) {
	s.manager.mu.Lock()
	ended := s.ended
	s.late = !ended
	why := s.why
	s.manager.mu.Unlock()
	if ended {
		return
	}
	s.cut()
	s.runner.log().Info("daemon was asked to stop and still runs; its object does not wait for it any more", logmark.Warning, true,
		"reason", string(why), "stopWithin", within.String())
	s.manager.settings.Events.Warn(s.object.Newest(), s.handler.ID, "DaemonStillRuns",
		fmt.Sprintf("Daemon %s was asked to stop %s ago (%s) and still runs; nothing waits for it any more", s.handler.ID, within, why))
	s.manager.settings.Host.Enqueue(s.key)
}

// first returns the record of a daemon that has not failed.
func first() progress.Record { return progress.Record{Cause: dsl.Running} }

// live runs the daemon until it must stop, or is over.
func (s *slot) live(delay time.Duration) {
	s.runner.log().V(1).Info("daemon begins", "initialDelay", delay.String())
	s.goOn(first(), s.sleep(delay))
}

// goOn runs the daemon again and again. If its code calls runtime.Goexit, another goroutine goes on: a daemon has one
// goroutine at any time.
func (s *slot) goOn(record progress.Record, goesOn bool) {
	began, returned := time.Now(), false
	defer func() {
		if returned {
			s.end()
			return
		}
		s.manager.running.Go(func() { s.goOn(s.ran(record, guard.Exited("daemon"), began)) })
	}()
	for goesOn {
		began = time.Now()
		err := s.run(record.Attempts + 1)
		record, goesOn = s.ran(record, err, began)
	}
	returned = true
}

// run runs the daemon once.
func (s *slot) run(count int) error {
	defer s.runner.heals(s.healthy())()
	return s.runner.run(count)
}

// healthy returns how long a run takes after which earlier failures no longer count.
func (s *slot) healthy() time.Duration {
	return max(cmp.Or(s.handler.Backoff.Max, dsl.DefaultBackoffMax), s.handler.Backoff.Initial)
}

// ran judges a run, and waits until the next run is due. It reports whether there is another run.
func (s *slot) ran(record progress.Record, err error, began time.Time) (_ progress.Record, goesOn bool) {
	log, took := s.runner.attemptLog(record.Attempts+1), time.Since(began)
	if took > s.healthy() {
		record = first()
		s.runner.failed = 0
		s.runner.voice.Over()
	}
	record, over := s.runner.judge(log, record, err, took)
	if over {
		s.manager.mu.Lock()
		s.over = true
		s.manager.mu.Unlock()
	}
	if record.Done {
		return record, false
	}
	cut, goesOn := s.rest(record.Due, began.Add(betweenChanges))
	if cut {
		record = first()
	}
	return record, goesOn
}

// againLocked ends the daemon's wait for its next run, and reports whether it waits.
func (s *slot) againLocked() bool {
	if s.again == nil || s.why != "" {
		return false
	}
	s.again()
	return true
}

// waits notes the function that ends the daemon's wait, nil after the wait.
func (s *slot) waits(again context.CancelFunc) {
	s.manager.mu.Lock()
	defer s.manager.mu.Unlock()
	s.again = again
}

// rest waits until the next run is due. Cut: a person, or a change of the daemon's view, ended the wait. goesOn: there
// is another run. least is the earliest time of a run after a change.
func (s *slot) rest(due, least time.Time) (cut, goesOn bool) {
	asked, again := context.WithCancel(s.runner.ctx)
	defer again()
	s.waits(again)
	defer s.waits(nil)
	timer := time.NewTimer(max(0, time.Until(due)))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return false, s.runner.ctx.Err() == nil
		case <-asked.Done(): // a person asked, or the daemon must stop
			goesOn = s.runner.ctx.Err() == nil
			return goesOn, goesOn
		case <-s.object.news:
			if !s.object.differs() {
				continue
			}
			if due.Before(least) {
				least = due
			}
			return true, s.sleep(time.Until(least))
		}
	}
}

// sleep waits, and reports whether the daemon runs after that.
func (s *slot) sleep(d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.runner.ctx.Done():
		}
	}
	return s.runner.ctx.Err() == nil
}

// end ends the daemon. It queues a reconcile, which decides about the object and its daemons.
func (s *slot) end() {
	m := s.manager
	m.mu.Lock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	m.endedLocked(s)
	late, since, why := s.late, s.since, s.why
	m.mu.Unlock()
	s.cancel(nil)
	s.cut()
	s.runner.voice.Over()
	switch {
	case late:
		s.runner.log().Info("daemon has stopped after all", "after", time.Since(since).Round(time.Second).String())
	case why != "":
		s.runner.log().V(1).Info("daemon stopped", "reason", string(why))
	}
	m.settings.Host.Enqueue(s.key)
}
