// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// move takes the object to a state. Errors in the previous state are over.
func (x run) move(s state, to, why string) state {
	s.place, s.problem, x.request.Step = s.after(x.machine, to, why), problem{}, 0
	return x.showBook(s)
}

// asked returns the state in the annotation goto, if there is one.
func (x run) asked() (to string, asked bool) {
	if x.Gone { // the annotation cannot be removed from an object that is gone
		return "", false
	}
	to, asked = x.request.Object.GetAnnotations()[x.gotoKey()]
	return to, asked
}

func (x run) gotoKey() string { return x.machine.GotoKey(x.Prefix) }

// goTo takes the transition that a person asks for, or rejects it, and removes the annotation. While that exists, no
// other transition is taken: the transition may have been written to the status before the annotation is removed.
func (x run) goTo(s state, to string) state {
	x.request.Patch.Remove(dsl.Path{"metadata", "annotations", x.gotoKey()}.String())
	if to == s.State {
		return s
	}
	if slices.ContainsFunc(s.declared.Ways(), func(w dsl.Way) bool { return w.To == to }) {
		return x.move(s, to, "a person asked for it")
	}
	x.request.Events.Event(dsl.Warning, GotoRefused, "%s", refusal(s.declared, x.gotoKey(), to))
	return s
}

// refusal says why a goto is rejected, and what is possible.
func refusal(from *dsl.State, key, to string) string {
	var ways []string
	for _, w := range from.Ways() {
		if !slices.Contains(ways, w.To) {
			ways = append(ways, w.To)
		}
	}
	can := "no way leads out of it"
	if len(ways) > 0 {
		can = "one can go to " + strings.Join(ways, ", ")
	}
	return fmt.Sprintf("The annotation %s asks for %q, and the object is in state %s: %s", key, to, from.Name, can)
}

// fail notes that an action has failed, or waits. A failure too many moves the object to the state of the budget.
func (x run) fail(s state, err error, action, reason string) state {
	if _, waits := attempt.Waits(err); waits {
		s.waits, s.idle = err, true
		return s
	}
	s.err, s.reason = fmt.Errorf("%s of state %s: %w", action, s.State, err), reason
	final := dsl.IsPermanent(err)
	if s.declared.Retries == nil || x.Early && !final {
		return s
	}
	if s.Failures++; !s.spent() && !final {
		return s
	}
	x.request.Log.Info("action failed once too often", logmark.Warning, true, "state", s.State, "action", action, "failed", s.Failures, "error", err.Error())
	return x.spend(s, fmt.Sprintf("%s failed %s: %v", action, times(s.Failures), err))
}

// spend leaves a state whose budget is used up.
func (x run) spend(s state, why string) state {
	b := s.declared.Retries
	if !outside(s.acts) {
		return x.move(s, b.Then, why)
	}
	// Enter has succeeded, and its changes are written alone; see put.
	s.Failures = max(s.Failures, int64(b.AtMost)+1) // in case the process ends before the transition is written
	s.goal = goal{b.Then, why}
	return s
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// choose takes the first transition whose condition holds. If a condition fails, later transitions are not
// evaluated, because the failed one may hold.
func (x run) choose(s state) state {
	about := x.request.Subject
	about.Object = s.object.DeepCopy()
	for _, t := range s.declared.Transitions {
		if t.Manual {
			continue
		}
		holds, err := true, error(nil)
		if t.When != nil {
			holds, err = attempt.Ask(t.When, &about)
		}
		_, waits := attempt.Waits(err)
		switch {
		case waits && s.waits == nil:
			s.waits = err
		case err != nil && !waits && s.err == nil:
			s.err, s.reason = attempt.Contained(fmt.Errorf("asking whether to go from %s to %s: %w", s.State, t.To, err)), WhenFailed
		case holds && err == nil:
			return x.move(s, t.To, t.Why)
		}
		if err != nil {
			return s
		}
	}
	return s
}

// limit computes how long the object may be in its state, if that depends on the object.
func (x run) limit(s state) state {
	about := x.request.Subject
	about.Object = s.object.DeepCopy()
	limited, err := limited(s.declared, &about)
	s.declared = limited
	_, waits := attempt.Waits(err)
	switch {
	case waits && s.waits == nil:
		s.waits = err
	case err != nil && !waits && s.err == nil:
		s.err, s.reason = attempt.Contained(fmt.Errorf("asking how long to stay in %s: %w", s.State, err)), StayFailed
	}
	return s
}

// limited returns the state with the limit that its stay has for an object. After an error, and without a limit, it has no stay.
func limited(of *dsl.State, about *dsl.Subject) (*dsl.State, error) {
	if of.Stay == nil || of.Stay.Limit == nil {
		return of, nil
	}
	out := *of
	out.Stay = nil
	limit, err := attempt.Limit(of.Stay.Limit, about)
	if err == nil && limit > 0 {
		out.Stay = &dsl.Stay{AtMost: limit, Then: of.Stay.Then}
	}
	return &out, err
}

// expire leaves a state whose time limit has expired.
func (x run) expire(s state) state {
	stay := s.declared.Stay
	if stay == nil || time.Now().Before(s.ends()) {
		return s
	}
	return x.move(s, stay.Then, fmt.Sprintf("it was in state %s for more than %s", s.State, stay.AtMost))
}
