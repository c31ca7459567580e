// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

const (
	// skew is how far the clocks of two machines may differ.
	skew = 5 * time.Minute
	// rest is how many retry periods a process waits at least before it looks again whether a namesake leads.
	rest = 5
)

// errNamesake ends a term in which nothing was done: a namesake leads.
var errNamesake = errors.New("an operator of the same name leads by a Lease in another namespace")

// Scope says where the operator works, so that operators of one name whose Leases are in several namespaces do not work on the
// same objects.
type Scope struct {
	// Key is the annotation of the Lease that has the scope. Without it no Lease is looked at but the process's own.
	Key string
	// Text is the scope as the annotation has it.
	Text string
	// Overlaps reports whether the scope of another operator, in the same form, may have a namespace in common with this one.
	Overlaps func(text string) bool
}

// mark writes the scope on a Lease.
func (s Scope) mark(lock *coordinationv1.Lease) {
	if s.Key != "" {
		metav1.SetMetaDataAnnotation(&lock.ObjectMeta, s.Key, s.Text)
	}
}

// namesakes are the Leases of the same name in other namespaces, as far as they were looked at. They are for the goroutine of
// [Elector.Run].
type namesakes struct {
	set    *Settings
	seen   map[string]*sighting // by namespace
	logged string               // the one that leads, as the log has it
}

// alone wraps lead: it is called when no namesake leads. The process has its own Lease by then. Of two processes that take their
// Leases at the same time, the one that lists later sees the Lease of the other one.
func (n *namesakes) alone(ctx context.Context, lead func(context.Context) error) func(context.Context) error {
	if n.set.Scope.Key == "" {
		return lead
	}
	return func(term context.Context) error {
		if err := n.search(ctx, term); err != nil {
			return err
		}
		return lead(term)
	}
}

// search looks until it knows whether a namesake leads. It returns [errNamesake] when one does, and [context.Canceled]
// when ctx or the term has ended before.
func (n *namesakes) search(ctx, term context.Context) error {
	looks := complaints{set: n.set}
	for ctx.Err() == nil {
		found, err := n.find(term)
		switch {
		case term.Err() != nil:
			return context.Canceled
		case err != nil:
			looks.report(ctx, err)
			n.set.pause(ctx)
		case found != nil:
			n.refuse(found)
			return errNamesake
		default:
			return nil
		}
	}
	return context.Canceled
}

// await waits until no namesake leads, or until ctx has ended.
func (n *namesakes) await(ctx context.Context) {
	looks := complaints{set: n.set}
	for {
		select {
		case <-time.After(wait.Jitter(rest*n.set.RetryPeriod, 1)): // two that found each other do not meet again
		case <-ctx.Done():
			return
		}
		found, err := n.find(ctx)
		switch {
		case err != nil:
			looks.report(ctx, err)
		case found == nil:
			return
		default:
			n.refuse(found)
		}
	}
}

// refuse says once of each namesake that this process does not lead because of it.
func (n *namesakes) refuse(found *coordinationv1.Lease) {
	other := found.Namespace + "/" + found.Name
	if line := other + " " + holder(found); n.logged != line {
		n.logged = line
		n.set.Log.Info("an operator of this name holds its Lease in another namespace, and the scopes overlap; this process does not lead",
			logmark.Warning, true, "lock", n.set.lockName(), "other", other, "leader", holder(found),
			"do", "stop one of the two, or give them names of their own or scopes without a common namespace; delete the other Lease if no process holds it")
	}
}

// find returns a Lease by which an operator of the same name leads in another namespace, with a scope that overlaps, or nil.
// An account that may not list Leases finds none.
func (n *namesakes) find(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, n.set.RenewDeadline)
	defer cancel()
	list, err := n.set.Client.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, n.set.Name).String(),
	})
	switch {
	case apierrors.IsForbidden(err):
		n.set.Log.V(1).Info("this process may not list Leases, so it does not see operators of its name with Leases in other namespaces", "lock", n.set.lockName())
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for operators of this name with Leases in other namespaces: %w", err)
	}
	for i := range list.Items {
		if lock := &list.Items[i]; n.rivals(lock) {
			return lock, nil
		}
	}
	return nil, nil
}

// rivals reports whether an operator of the same name leads by a Lease in another namespace, with a scope that overlaps.
func (n *namesakes) rivals(lock *coordinationv1.Lease) bool {
	text, marked := lock.Annotations[n.set.Scope.Key]
	if lock.Name != n.set.Name || lock.Namespace == n.set.Namespace || !marked || !n.set.Scope.Overlaps(text) {
		return false
	}
	if len(lock.OwnerReferences) > 0 {
		return true // the garbage collector deletes the lock of mode life with its pod
	}
	if n.seen == nil {
		n.seen = map[string]*sighting{}
	}
	seen := n.seen[lock.Namespace]
	if seen == nil {
		seen = &sighting{}
		n.seen[lock.Namespace] = seen
	}
	return !seen.expired(lock) && !longOver(lock)
}

// longOver reports whether a Lease was over long ago, however the clocks differ.
func longOver(lock *coordinationv1.Lease) bool {
	renewed, seconds := lock.Spec.RenewTime, lock.Spec.LeaseDurationSeconds
	return renewed == nil || seconds == nil || time.Since(renewed.Time) > time.Duration(*seconds)*time.Second+skew
}

// marking is a client whose Leases have the scope.
type marking struct {
	coordination.LeasesGetter
	scope Scope
}

// Leases returns the client of a namespace.
func (m marking) Leases(namespace string) coordination.LeaseInterface {
	return markingLeases{m.LeasesGetter.Leases(namespace), m.scope}
}

type markingLeases struct {
	coordination.LeaseInterface
	scope Scope
}

// Create creates a Lease with the scope.
func (m markingLeases) Create(ctx context.Context, lock *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	m.scope.mark(lock)
	return m.LeaseInterface.Create(ctx, lock, o)
}

// Update updates a Lease, which has the scope then.
func (m markingLeases) Update(ctx context.Context, lock *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	m.scope.mark(lock)
	return m.LeaseInterface.Update(ctx, lock, o)
}
