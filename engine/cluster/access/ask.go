// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// spacesMost bounds the namespaces in which a right is checked if the account does not have it in all.
const spacesMost = 10

// check returns the gap of a right; nil if the account has the right. For several namespaces it first asks about all at
// once, and then about some of them.
func (m *Monitor) check(ctx context.Context, d rbac.Demand) (*gap, error) {
	spaces := d.Namespaces
	if scope, known := m.settings.Owner.Namespaces(); known && d.Namespaced && spaces[0] == "" {
		spaces = scope
	} else if len(spaces) == 1 {
		return m.checkIn(ctx, d.Rule, spaces)
	}
	if all, err := m.ask(ctx, d.Rule, ""); all || err != nil {
		return nil, err
	}
	// The account may have the right in each namespace that counts. Then nothing is missing, and the answer about all
	// namespaces is not asked for again.
	m.answers[d.Rule.String()].again = time.Time{}
	return m.checkIn(ctx, d.Rule, spaces)
}

// checkIn checks a right in namespaces, one by one. It returns the gap; nil if there is none.
func (m *Monitor) checkIn(ctx context.Context, r rbac.Rule, namespaces []string) (*gap, error) {
	out := &gap{Rule: r, of: len(namespaces)}
	for _, ns := range namespaces[:min(len(namespaces), spacesMost)] {
		allowed, err := m.ask(ctx, r, ns)
		if err != nil {
			return nil, err
		}
		if !allowed {
			out.namespaces = append(out.namespaces, ns)
		}
	}
	if len(out.namespaces) == 0 {
		return nil, nil
	}
	return out, nil
}

// ask returns whether the account has a right in a namespace. It sends a request unless the answer is known.
func (m *Monitor) ask(ctx context.Context, r rbac.Rule, namespace string) (bool, error) {
	r.Namespace = namespace
	question, now := r.String(), time.Now()
	known := m.answers[question]
	if known != nil && (known.again.IsZero() || now.Before(known.again)) {
		known.used = m.looks
		m.soon(known.again)
		return known.allowed, nil
	}
	allowed, err := m.settings.Catalog.Allowed(ctx, r.Attributes())
	if err != nil {
		return false, err
	}
	next := &answer{right: r.Verb + " " + r.Target(), allowed: allowed, asked: now, used: m.looks}
	if !allowed {
		if known != nil {
			next.wait = known.wait
		}
		var in time.Duration
		next.wait, in = backoff.Next(next.wait, askAgain, askLast)
		next.again = now.Add(in)
		m.soon(next.again)
	}
	m.answers[question] = next
	return allowed, nil
}
