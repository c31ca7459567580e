// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"math/rand/v2"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/handwerk-dev/handwerk/engine/rights"
)

// lacking returns what is missing of a right, nil when nothing is. It asks for all namespaces at once
// where there are several, and then for some of them.
func (l *lacks) lacking(ctx context.Context, d rights.Demand, used map[inquiry]bool) (*lack, error) {
	spaces := d.Namespaces
	if scope := l.engine.scope; scope.Live() && d.Namespaced && spaces[0] == "" {
		spaces, _ = scope.Names(true)
	} else if len(spaces) == 1 {
		allowed, err := l.ask(ctx, d.Rule, spaces[0], used)
		if err != nil || allowed {
			return nil, err
		}
		return missingIn(d.Rule, spaces, 1), nil
	}
	if all, err := l.askWide(ctx, d.Rule, used); all || err != nil {
		return nil, err
	}
	var without []string
	for _, ns := range spaces[:min(len(spaces), spacesMost)] {
		allowed, err := l.ask(ctx, d.Rule, ns, used)
		if err != nil {
			return nil, err
		}
		if !allowed {
			without = append(without, ns)
		}
	}
	return missingIn(d.Rule, without, len(spaces)), nil
}

// missingIn is a right that is missing in namespaces out of so many, nil when there are none.
func missingIn(r rights.Rule, namespaces []string, all int) *lack {
	if len(namespaces) == 0 {
		return nil
	}
	out := &lack{Rule: r, namespaces: namespaces}
	if namespaces[0] == "" {
		out.namespaces = nil
	}
	if all > spacesMost {
		out.asked, out.all = spacesMost, all
	}
	return out
}

// askWide asks for all namespaces. Who has not the right there may have it in each that counts: that is
// no fault, and not asked again.
func (l *lacks) askWide(ctx context.Context, r rights.Rule, used map[inquiry]bool) (bool, error) {
	allowed, err := l.ask(ctx, r, "", used)
	if err == nil && !allowed {
		l.answers[inquiryOf(r, "")].again = time.Time{}
	}
	return allowed, err
}

func inquiryOf(r rights.Rule, namespace string) inquiry {
	return inquiry{r.Group, r.Resource, r.Subresource, r.Verb, r.Name, namespace}
}

// ask asks for a right in a namespace, unless the answer is known.
func (l *lacks) ask(ctx context.Context, r rights.Rule, namespace string, used map[inquiry]bool) (bool, error) {
	q, now := inquiryOf(r, namespace), time.Now()
	used[q] = true
	known := l.answers[q]
	if known != nil && (known.again.IsZero() || now.Before(known.again)) {
		l.soon(known.again)
		return known.allowed, nil
	}
	allowed, err := l.review(ctx, authorizationv1.ResourceAttributes{
		Group: q.group, Resource: q.resource, Subresource: q.subresource, Verb: q.verb, Name: q.name, Namespace: q.namespace,
	})
	if err != nil {
		return false, err
	}
	next := &ruling{allowed: allowed, asked: now}
	if !allowed {
		next.wait = askAgain
		if known != nil && !known.allowed {
			next.wait = min(2*known.wait, askLast)
		}
		next.again = now.Add(next.wait - rand.N(next.wait/5))
		l.soon(next.again)
	}
	l.answers[q] = next
	return allowed, nil
}

// soon looks again at that time at the latest; never for the zero time.
func (l *lacks) soon(at time.Time) {
	if !at.IsZero() && (l.due.IsZero() || at.Before(l.due)) {
		l.due = at
	}
}
