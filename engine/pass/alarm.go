// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import "time"

// Alarm is when a handler of an object asked to be run again, with those of other handlers behind it. It is never changed;
// nil is none. There may be one for each object of a cluster, so it is one piece.
type Alarm struct {
	handler string
	at      time.Time
	soon    bool
	next    *Alarm
}

// AtOnce reports whether a handler that asks to run after a time asks to run at once. A tenth of a second and more is a pace,
// which somebody has chosen; less keeps a core busy.
func AtOnce(after time.Duration) bool { return after < 100*time.Millisecond }

// With returns the alarms with that of a handler after a time, in the place of the one that it had. One that is at once is
// soon.
func (a *Alarm) With(handler string, after time.Duration, now time.Time) *Alarm {
	return &Alarm{handler: handler, at: now.Add(max(after, 0)), soon: AtOnce(after), next: a.Without(handler)}
}

// Without returns the alarms but for that of a handler.
func (a *Alarm) Without(handler string) *Alarm {
	return a.only(func(one *Alarm) bool { return one.handler != handler })
}

// Pending returns the alarms that are not due.
func (a *Alarm) Pending(now time.Time) *Alarm {
	return a.only(func(one *Alarm) bool { return !one.Passed(now) })
}

// only returns the alarms that are wanted: these themselves where all are.
func (a *Alarm) only(wanted func(*Alarm) bool) *Alarm {
	if a == nil {
		return nil
	}
	rest := a.next.only(wanted)
	switch {
	case !wanted(a):
		return rest
	case rest == a.next:
		return a
	}
	return &Alarm{a.handler, a.at, a.soon, rest}
}

// Of returns that of a handler, nil when it has none.
func (a *Alarm) Of(handler string) *Alarm {
	for ; a != nil; a = a.next {
		if a.handler == handler {
			return a
		}
	}
	return nil
}

// Passed reports whether the time of the first alarm has come; not where there is none.
func (a *Alarm) Passed(now time.Time) bool { return a != nil && !now.Before(a.at) }

// Soon reports whether the first alarm was to be at once.
func (a *Alarm) Soon() bool { return a != nil && a.soon }

// Next returns when the earliest is due; zero where there is none.
func (a *Alarm) Next() (at time.Time) {
	for ; a != nil; a = a.next {
		if at.IsZero() || a.at.Before(at) {
			at = a.at
		}
	}
	return at
}
