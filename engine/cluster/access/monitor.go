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
	// settling is how long a Monitor waits after the first trigger, because rights are usually granted together.
	settling = 2 * time.Second
	// askAgain is the delay before a missing right is checked again. It doubles each time, up to askLast.
	askAgain = time.Second
	askLast  = 5 * time.Minute
	// doubtAfter is the age from which an answer is checked again after a rejected request.
	doubtAfter = 10 * time.Second
	// refusedMost bounds the rejected requests that are kept: there may be one for each object.
	refusedMost = 100
)

// Asker checks some rights itself, as a source does.
type Asker interface {
	// Asks reports whether the asker checks this right.
	Asks(rbac.Rule) bool
	// Missing returns the rights that the asker found missing, in no order.
	Missing() []ops.MissingRight
}

// Owner is the operator whose rights a Monitor checks.
type Owner interface {
	// Resources returns the resources that the operator works on now.
	Resources() []*dsl.Resource
	// Namespaces returns the namespaces in the operator's scope; there may be none. Known is true if the scope depends
	// on the namespaces of the cluster. Otherwise each right names its namespaces.
	Namespaces() (names []string, known bool)
	// OnGranted is called when a missing right was granted.
	OnGranted()
}

// Settings configure a Monitor. Namespace is optional.
type Settings struct {
	Operator *dsl.Operator
	Owner    Owner
	// Catalog knows the served resources, and checks rights.
	Catalog *discovery.Catalog
	// Reviews returns the name of the account.
	Reviews authentication.SelfSubjectReviewsGetter
	// Askers yields the askers, which check some rights instead of the Monitor.
	Askers iter.Seq[Asker]
	// Namespace is the namespace of the operator's own objects; see [rbac.Settings].
	Namespace string
	// Log gets each missing right once, and once when it is granted.
	Log logr.Logger
}

// Monitor finds the rights that the operator needs and its account lacks. It checks a right when it is first needed and
// after rejected requests. It checks missing rights again, with back-off. It reports missing rights, and stops no
// handler. All methods may be called at any time from any goroutine.
type Monitor struct {
	settings Settings
	wake     chan struct{}

	// Only the goroutine of Run uses the following fields. Answers are the server's answers, by the right. Looks counts
	// the calls of look. Due is when to look again; zero if only an event makes it necessary. Wait is the last wait
	// after a failed check. Introduced is true if the account is known, or if the server does not serve reviews.
	answers    map[string]*answer
	looks      int
	due        time.Time
	wait       time.Duration
	introduced bool

	mu sync.Mutex
	// refused are the rights that rejected requests needed since the last look.
	refused []string
	// retry is true if missing rights may have been granted since the last look.
	retry   bool
	account string
	missing []gap
}

// answer is the server's answer about one right in one namespace, or in all.
type answer struct {
	// right is the verb with the resource, in the form of a rejection.
	right   string
	allowed bool
	// asked is when the server was asked. Again is when to ask it again; zero means never.
	asked, again time.Time
	wait         time.Duration
	// used is the number of the last look that needed the answer.
	used int
}

// New returns a Monitor. It sends no request before Run.
func New(s Settings) *Monitor {
	return &Monitor{settings: s, wake: make(chan struct{}, 1), answers: map[string]*answer{}}
}

// Run checks rights until ctx ends. Start it when [Settings].Askers know their rights.
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

// Wake makes the Monitor compute the needed rights again soon. It never blocks.
func (m *Monitor) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Retry makes the Monitor check all missing rights soon, because somebody may have granted some. It never blocks.
func (m *Monitor) Retry() {
	m.mu.Lock()
	m.retry = true
	m.mu.Unlock()
	m.Wake()
}

// OnError takes the error of a request, or nil. If the error names a missing right, the Monitor checks that right soon.
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

// needed returns the rights that the operator needs.
func (m *Monitor) needed(ctx context.Context) []rbac.Rule {
	s := m.settings
	return rbac.Of(s.Operator, rbac.Settings{Lookup: lookup(ctx, s.Operator, s.Catalog), Resources: s.Owner.Resources(), Namespace: s.Namespace})
}

// elsewhere reports whether an asker checks a right.
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

// invalidate expires the answers that a rejected request contradicts, and the answers about rights that may have been
// granted.
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

// postpone schedules the next look after a failed request.
func (m *Monitor) postpone(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	m.settings.Log.V(1).Info("checking rights failed; it is retried", "reason", err.Error())
	var in time.Duration
	m.wait, in = backoff.Next(m.wait, askAgain, askLast)
	m.soon(time.Now().Add(in))
}

// soon schedules the next look for a time at the latest; the zero time means never.
func (m *Monitor) soon(at time.Time) {
	if !at.IsZero() && (m.due.IsZero() || at.Before(m.due)) {
		m.due = at
	}
}
