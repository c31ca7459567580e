// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package access finds the rights that the operator's account lacks, while the operator runs ([Monitor]) or for a
// person ([Lookup], [Reviewer]), and adds advice to errors of requests that a missing right has caused. Package rbac
// computes the rights that an operator needs.
package access

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const (
	// settling is how long a Monitor waits for more to come, once something has: rights are given together.
	settling = 2 * time.Second
	// askAgain is how long it is until a right that is missing is asked for again; it doubles each
	// time, up to askLast.
	askAgain = time.Second
	askLast  = 5 * time.Minute
	// doubtAfter is how old an answer must be for a refused request to have it asked for again.
	doubtAfter = 10 * time.Second
	// refusedMost bounds how many refused requests are kept: there may be as many as there are objects.
	refusedMost = 100
)

// Asker checks some rights itself, as a source does.
type Asker interface {
	// Asks reports whether the asker checks a right.
	Asks(rbac.Rule) bool
	// Missing returns the missing ones of these rights, in no order.
	Missing() []ops.MissingRight
}

// Owner is the operator whose rights a Monitor asks for.
type Owner interface {
	// Resources returns the resources that the operator works on now.
	Resources() []*dsl.Resource
	// Namespaces returns the namespaces in the operator's scope. They are known, and may be none, where the scope depends on
	// the namespaces of the cluster; otherwise the rights name them.
	Namespaces() (names []string, known bool)
	// OnGranted is called when a missing right was granted.
	OnGranted()
}

// Settings configure a Monitor. Namespace is optional.
type Settings struct {
	Operator *dsl.Operator
	Owner    Owner
	// Catalog answers what is served, and what the account may do.
	Catalog *discovery.Catalog
	// Reviews returns the name of the account.
	Reviews authentication.SelfSubjectReviewsGetter
	// Askers yields those who ask for rights themselves.
	Askers iter.Seq[Asker]
	// Namespace is where the operator keeps what is its own; see [rbac.Settings].
	Namespace string
	// Log gets each missing right once, and once when it is granted.
	Log logr.Logger
}

// Monitor finds the rights that the operator needs and its account lacks. It checks rights when they are first needed and after
// refused requests, and missing rights again with back-off. Missing rights are shown; they stop no handler. All methods may be
// called at any time from any goroutine.
type Monitor struct {
	settings Settings
	wake     chan struct{}

	// Only Run's goroutine uses these. answers are the server's, by what was asked, and looks counts how often
	// it was looked what to ask; due is when to look again, zero when not by itself; wait is the last wait
	// after a failed check; introduced: the account is known, or the server does not serve reviews.
	answers    map[string]*answer
	looks      int
	due        time.Time
	wait       time.Duration
	introduced bool

	mu sync.Mutex
	// refused are the rights that refused requests have needed since the last look.
	refused []string
	// retry: what is missing may have been given.
	retry   bool
	account string
	missing []gap
}

// answer is what the server said of one right in one namespace, or in all.
type answer struct {
	// right is the verb with the resource, as a refusal has it.
	right   string
	allowed bool
	// asked is when, again when it is to be asked again, zero for never.
	asked, again time.Time
	wait         time.Duration
	// used is the look that needed it last.
	used int
}

// New returns a Monitor that asks nothing before Run does.
func New(s Settings) *Monitor {
	return &Monitor{settings: s, wake: make(chan struct{}, 1), answers: map[string]*answer{}}
}

// Run asks until ctx ends. It is to begin when [Settings].Askers know what they ask for.
func (m *Monitor) Run(ctx context.Context) {
	for m.look(ctx); ctx.Err() == nil; m.look(ctx) {
		var due <-chan time.Time
		if !m.due.IsZero() {
			due = time.After(time.Until(m.due))
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			continue
		case <-m.wake:
		}
		select { // more may come
		case <-ctx.Done():
		case <-time.After(settling):
		}
	}
}

// Wake has the Monitor look soon whether other rights are needed than before. It never blocks.
func (m *Monitor) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Retry says that something that was missing may have been given: all that is missing is asked for soon. It
// never blocks.
func (m *Monitor) Retry() {
	m.mu.Lock()
	m.retry = true
	m.mu.Unlock()
	m.Wake()
}

// OnError takes the error of a request, or nil: when it says that a right is missing, that is asked for soon.
func (m *Monitor) OnError(err error) {
	refusal := refused(err)
	if refusal == nil {
		return
	}
	m.mu.Lock()
	news := len(m.refused) < refusedMost
	if news {
		for _, right := range refusal.rights {
			m.refused = append(m.refused, right.String())
		}
	}
	m.mu.Unlock()
	if news {
		m.Wake()
	}
}

// look checks the rights that are due, and reports changes.
func (m *Monitor) look(ctx context.Context) {
	select {
	case <-m.wake: // this look sees what it stands for
	default:
	}
	m.introduce(ctx)
	m.invalidate()
	m.due = time.Time{}
	m.looks++
	var missing []gap
	needed := slices.DeleteFunc(m.needed(ctx), m.elsewhere)
	for _, d := range rbac.Demands(needed) {
		found, err := m.check(ctx, d)
		if err != nil {
			m.postpone(ctx, err)
			return
		}
		if found != nil {
			missing = append(missing, *found)
		}
	}
	m.wait = 0
	maps.DeleteFunc(m.answers, func(_ string, a *answer) bool { return a.used != m.looks })
	m.found(missing)
}

// needed are the rights that the operator needs.
func (m *Monitor) needed(ctx context.Context) []rbac.Rule {
	s := m.settings
	return rbac.Of(s.Operator, rbac.Settings{Lookup: lookup(ctx, s.Operator, s.Catalog), Resources: s.Owner.Resources(), Namespace: s.Namespace})
}

// elsewhere reports whether somebody else asks for a right.
func (m *Monitor) elsewhere(r rbac.Rule) bool {
	for other := range m.settings.Askers {
		if other.Asks(r) {
			return true
		}
	}
	return false
}

// introduce reads the name of the account, once. Without it, messages leave the account out.
func (m *Monitor) introduce(ctx context.Context) {
	if m.introduced {
		return
	}
	me, err := m.settings.Reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	m.introduced = err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if err != nil {
		m.settings.Log.V(1).Info("operator's account is unknown", "reason", err.Error())
		return
	}
	m.mu.Lock()
	m.account = me.Status.UserInfo.Username
	m.mu.Unlock()
}

// invalidate has answers asked for again that a refused request speaks against, or whose right may have been given.
func (m *Monitor) invalidate() {
	m.mu.Lock()
	refused, retry := m.refused, m.retry
	m.refused, m.retry = nil, false
	m.mu.Unlock()
	now := time.Now()
	for _, a := range m.answers {
		switch {
		case a.allowed && slices.Contains(refused, a.right):
			a.again = a.asked.Add(doubtAfter)
		case retry && !a.again.IsZero():
			a.again = now
		}
	}
}

// postpone looks again later, as the server could not be asked.
func (m *Monitor) postpone(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	m.settings.Log.V(1).Info("checking rights failed; it is retried", "reason", err.Error())
	var in time.Duration
	m.wait, in = backoff.Next(m.wait, askAgain, askLast)
	m.soon(time.Now().Add(in))
}

// soon looks again at that time at the latest; never for the zero time.
func (m *Monitor) soon(at time.Time) {
	if !at.IsZero() && (m.due.IsZero() || at.Before(m.due)) {
		m.due = at
	}
}
