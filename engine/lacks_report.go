// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/rights"
)

// whoMost bounds how many of those who need a right a message names.
const whoMost = 3

// found notes what is missing now, and logs what is news. When something was given, those who were
// refused try again at once.
func (l *lacks) found(missing []lack) {
	l.mu.Lock()
	before, account := l.missing, l.account
	l.missing = missing
	l.mu.Unlock()
	for _, m := range without(missing, before) {
		log := l.engine.log
		if m.Optional {
			log = log.V(1)
		}
		log.Info("right is missing", dsl.LogWarning, true, "right", m.String(), "for", m.who(), "account", account)
	}
	given := without(before, missing)
	for _, m := range given {
		log := l.engine.log
		if m.Optional {
			log = log.V(1)
		}
		log.Info("right that was missing is there, or not needed any more", "right", m.String())
	}
	if len(given) == 0 {
		return
	}
	l.hurry() // rights are given together, and each is asked for at a time of its own
	for _, r := range l.engine.resources {
		r.box.Grant()
	}
}

// tells reports whether an error is that of a right which is told to be missing already.
func (l *lacks) tells(err error) bool {
	right, answer := refusedIn(err)
	if answer == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.missing, func(m lack) bool {
		return !m.Optional && m.Target() == right.Target() && m.Verb == right.Verb
	})
}

// without are those of which the others have none of the same right, wherever.
func without(all, others []lack) (out []lack) {
	for _, m := range all {
		same := func(o lack) bool { return inquiryOf(o.Rule, "") == inquiryOf(m.Rule, "") }
		if !slices.ContainsFunc(others, same) {
			out = append(out, m)
		}
	}
	return out
}

// String names the right and where it is missing, as in "create deployments.apps in namespace a".
func (m lack) String() string { return m.Rule.String() + m.where() }

// where says where it is missing, beginning with a space; empty when that is everywhere.
func (m lack) where() string {
	if len(m.namespaces) == 0 {
		return ""
	}
	out := " in namespace " + strings.Join(m.namespaces[:min(len(m.namespaces), namesMost)], ", ")
	if m.all > m.asked {
		out += fmt.Sprintf(" (%d of %d were asked for)", m.asked, m.all)
	}
	return out
}

// who says who needs it.
func (m lack) who() string {
	var names []string
	for _, reason := range m.Reasons {
		name := reason.Who
		if name == rights.Engine {
			name = reason.String()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - whoMost; more > 0 {
		names = append(names[:whoMost], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}

// ready are the rights that are missing, a check for each resource that lacks some. What the operator
// works without is no fault.
func (l *lacks) ready() (out []ops.Check) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < len(l.missing); {
		target := l.missing[i].Target()
		var parts []string
		for ; i < len(l.missing) && l.missing[i].Target() == target; i++ {
			if m := l.missing[i]; !m.Optional {
				parts = append(parts, fmt.Sprintf("may not %s (%s)", m, m.who()))
			}
		}
		if len(parts) > 0 {
			out = append(out, ops.Check{Name: "rights/" + target, State: ops.Warn, Message: strings.Join(parts, "; ") + l.byLocked()})
		}
	}
	return out
}

// by names the account, after a semicolon; empty when it is not known.
func (l *lacks) by() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byLocked()
}

func (l *lacks) byLocked() string {
	if l.account == "" {
		return ""
	}
	return "; account " + l.account
}

// stats are the rights that are missing, also those that feeds tell of, for metrics.
func (l *lacks) stats() []ops.MissingRight {
	counts := map[ops.MissingRight]int{}
	l.mu.Lock()
	for _, m := range l.missing {
		if !m.Optional {
			counts[ops.MissingRight{Resource: m.Target(), Verb: m.Verb}] += max(1, len(m.namespaces))
		}
	}
	l.mu.Unlock()
	for _, f := range l.engine.feeds() {
		for _, m := range f.Missing() {
			one := ops.MissingRight{Resource: m.Resource, Verb: m.Verb}
			counts[one] = max(counts[one], m.Namespaces) // feeds of the same resource lack the same
		}
	}
	var out []ops.MissingRight
	for m, n := range counts {
		m.Namespaces = n
		out = append(out, m)
	}
	return out
}
