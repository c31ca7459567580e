// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/rights"
)

const (
	// askAgain is how long it is until a right that is missing is asked for again; it doubles each time, up to
	// askLast. askMost is how long after an answer a refusal makes it asked for again.
	askAgain = time.Second
	askMost  = 10 * time.Second
	askLast  = 5 * time.Minute
	// namesMost bounds how many namespaces a message names.
	namesMost = 10
)

// spacesMost bounds in how many namespaces a right is asked for that the account does not have in all.
const spacesMost = 10

// lacks tells which rights the operator's account lacks of those that it needs, but for those that
// feeds ask for themselves. It asks when the feeds have settled, about what is new when something has
// come, about what a request was refused for, and about what is missing with a growing wait. What is
// missing is shown and stops nobody.
type lacks struct {
	engine *Engine
	review rights.Reviewer
	wake   chan struct{}

	// Only run's goroutine uses these. answers are the server's; due is when to look again, zero when
	// not by itself; failures counts the looks in a row at which the server could not be asked;
	// introduced: the account is known, or nobody tells it.
	answers    map[inquiry]*ruling
	due        time.Time
	failures   int
	introduced bool

	mu sync.Mutex
	// refused are rights for lack of which a request was refused since the last look.
	refused []rights.Rule
	// hasty: what is missing may have been given.
	hasty   bool
	account string
	missing []lack
}

// inquiry is what the server is asked: for one right in one namespace, or in all.
type inquiry struct{ group, resource, subresource, verb, name, namespace string }

// ruling is what it said.
type ruling struct {
	allowed bool
	// asked is when, again when it is to be asked again, zero for never.
	asked, again time.Time
	wait         time.Duration
}

// lack is a right that is missing.
type lack struct {
	rights.Rule
	// namespaces are those where it is missing; empty when that is everywhere.
	namespaces []string
	// asked is in how many namespaces of how many it was asked for; zero when in all.
	asked, all int
}

func newLacks(e *Engine) *lacks {
	l := &lacks{engine: e, wake: make(chan struct{}, 1), answers: map[inquiry]*ruling{}}
	l.review = reviewerOf(e.clients.kubernetes.AuthorizationV1())
	return l
}

// run asks until ctx ends.
func (l *lacks) run(ctx context.Context) {
	for _, f := range l.engine.feeds() {
		select {
		case <-f.Settled():
		case <-ctx.Done():
			return
		}
	}
	for l.look(ctx); ctx.Err() == nil; l.look(ctx) {
		var due <-chan time.Time
		if !l.due.IsZero() {
			due = time.After(time.Until(l.due))
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			continue
		case <-l.wake:
		}
		select { // more may come
		case <-ctx.Done():
		case <-time.After(settling):
		}
	}
}

// nudge makes it look again soon. It never blocks.
func (l *lacks) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// hurry says that something that was missing may have been given.
func (l *lacks) hurry() {
	l.mu.Lock()
	l.hasty = true
	l.mu.Unlock()
	l.nudge()
}

// hear takes the error of a request: when it says that a right is missing, that is asked for.
func (l *lacks) hear(err error) {
	right, answer := refusedIn(err)
	if answer == nil {
		return
	}
	l.mu.Lock()
	news := len(l.refused) < 100 // there may be as many as there are objects
	if news {
		l.refused = append(l.refused, right)
	}
	l.mu.Unlock()
	if news {
		l.nudge()
	}
}

// introduce asks who this process is to the API server, once. Where that is not told, nobody knows.
func (l *lacks) introduce(ctx context.Context) {
	if l.introduced {
		return
	}
	reviews := l.engine.clients.kubernetes.AuthenticationV1().SelfSubjectReviews()
	me, err := reviews.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	l.introduced = err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if err != nil {
		l.engine.log.V(1).Info("the operator's account is not known", "reason", err.Error())
		return
	}
	l.mu.Lock()
	l.account = me.Status.UserInfo.Username
	l.mu.Unlock()
}

// look asks what is to be asked now, and tells what has changed.
func (l *lacks) look(ctx context.Context) {
	l.introduce(ctx)
	l.recall()
	l.due = time.Time{}
	var missing []lack
	used := map[inquiry]bool{}
	for _, d := range l.needed(ctx) {
		found, err := l.lacking(ctx, d, used)
		if err != nil {
			l.postpone(ctx, err)
			return
		}
		if found != nil {
			missing = append(missing, *found)
		}
	}
	l.failures = 0
	for q := range l.answers {
		if !used[q] {
			delete(l.answers, q)
		}
	}
	l.found(missing)
}

// postpone looks again later, as the server could not be asked.
func (l *lacks) postpone(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.engine.log.V(1).Info("rights are not known", "reason", err.Error())
	wait := min(askAgain<<min(l.failures, 10), askLast)
	l.failures++
	l.soon(time.Now().Add(wait - rand.N(wait/5)))
}

// recall notes what was refused since the last look, and what may have been given.
func (l *lacks) recall() {
	l.mu.Lock()
	refused, hasty := l.refused, l.hasty
	l.refused, l.hasty = nil, false
	l.mu.Unlock()
	now := time.Now()
	for q, a := range l.answers {
		suspect := a.allowed && slices.ContainsFunc(refused, func(r rights.Rule) bool {
			return r.Group == q.group && r.Resource == q.resource && r.Subresource == q.subresource && r.Verb == q.verb
		})
		switch {
		case suspect:
			a.again = a.asked.Add(askMost)
		case hasty && !a.again.IsZero():
			a.again = now
		}
	}
}

// needed are the rights to ask for: all but those that feeds ask for.
func (l *lacks) needed(ctx context.Context) []rights.Demand {
	e := l.engine
	rules := rights.Of(e.op, rights.Settings{Lookup: lookupIn(ctx, e.op, e.catalog)})
	return rights.Demands(slices.DeleteFunc(rules, e.feedAsks))
}

// feedAsks reports whether a feed asks for the right, and tells when it is missing.
func (e *Engine) feedAsks(r rights.Rule) bool {
	verb := r.Verb
	if r.Subresource != "" {
		verb += " " + r.Subresource
	}
	resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
	return slices.ContainsFunc(e.feeds(), func(f *feed.Feed) bool { return f.Asks(resource, verb, r.Namespace) })
}
