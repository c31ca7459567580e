// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package leader decides which process of an operator works.
//
// In mode lease the holder of a Lease works and renews it; the others wait until it is released, or until it was not renewed in
// time. In mode life the first pod to create the lock works until that pod is gone. Both need rights in one namespace only:
// get, create, update and delete leases, and for mode life get pods. With the right to watch leases, a leader notices at once
// when somebody takes its lock.
package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
)

// The defaults of [Settings].
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// jitter keeps processes from asking in step.
const jitter = 0.2

// errLost is the cause with which a leader's context ends when leadership is lost.
var errLost = errors.New("leadership is lost")

// Settings say how the leader is found.
type Settings struct {
	// Name and Namespace are required. In mode dsl.LeaderNone every process works, and nothing else here matters.
	// The renew deadline is how long the leader may write after it last renewed the lease or, in mode life, last saw
	// that the lock is its own. The lease duration counts in whole seconds.
	dsl.LeaderElection
	// Earlier are the names that the lock had under earlier names of the operator. This process does not lead while another
	// one leads by one of these locks. They are not written.
	Earlier []string
	// Scope, when it has a key, keeps this process from leading while an operator of the same name leads by a Lease in another
	// namespace, and their scopes overlap. It takes the right to list Leases by the lock's name in all namespaces.
	Scope Scope
	// Identity identifies this process in mode lease. Defaults to the host's name and a random
	// UUID. Two processes must not share one.
	Identity string
	// PodName is the pod that this process runs in. Required in mode life.
	PodName string
	// Client should give up on a request in less than RenewDeadline.
	Client Client
	// Watcher, when set, watches the Lease while this process leads, so that it notices at once
	// when somebody else takes the Lease or deletes it. It must not have a timeout. Without the
	// right to watch the Lease it is not used.
	Watcher kube.Interface
	Log     logr.Logger
	// Metrics show whether the process leads. Optional.
	Metrics Metrics
}

// Client is the part of [kube.Clients] that reads and writes the lock, and reads the pods of leaders.
type Client interface {
	CoordinationV1() coordination.CoordinationV1Interface
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
}

// Metrics show whether a process leads by a lock, as [ops.Metrics] does.
type Metrics interface {
	Leader(lock string, leading bool)
}

// Elector finds out whether this process leads. Leading, Held and Run may be called from any
// goroutine, Run once.
type Elector struct {
	set   Settings
	fence fence
	// leader is who led as far as this process has heard, nil before that. Since is when this process began to lead, nil while
	// it does not. Trouble is why the last request about the lock has failed, nil if it has not.
	leader    atomic.Pointer[string]
	since     atomic.Pointer[time.Time]
	trouble   atomic.Pointer[error]
	namesakes namesakes
}

// New checks the settings. It sends no request.
func New(set Settings) (*Elector, error) {
	e := &Elector{set: set.withDefaults()}
	e.namesakes.set = &e.set
	e.fence.limit, e.fence.asked = e.set.RenewDeadline, make(chan struct{}, 1)
	if err := e.set.fault(); err != nil {
		return nil, fmt.Errorf("setting up leader election: %w", err)
	}
	if e.set.Mode == dsl.LeaderLease && e.set.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("setting up leader election: %w", err)
		}
		e.set.Identity = host + "_" + string(uuid.NewUUID())
	}
	return e, nil
}

// Run calls lead whenever this process is the leader, until ctx ends or lead returns by itself;
// lead's result is then Run's, but for the context's own error.
//
// Lead's context ends with the cause errLost when leadership is lost; [Elector.Held] is false by
// then. It does not end with ctx: lead must watch ctx itself, and may take its time to end. If leadership is
// lost in that time, its context ends. After a loss Run waits for lead to return, and tries to become
// the leader again unless ctx has ended. When ctx ends, Run keeps the lease until lead has
// returned, then releases it; the lock of mode life stays and goes with the pod.
func (e *Elector) Run(ctx context.Context, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		lost, err := e.term(ctx, lead)
		switch {
		case errors.Is(err, errNamesake):
			e.namesakes.await(ctx)
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			return nil
		case !lost || ctx.Err() != nil:
			return err
		case err != nil && !errors.Is(err, context.Canceled):
			e.set.Log.Error(err, "the work ended with an error when leadership was lost")
		}
	}
	return nil
}

// Held is the fence: it is true only while this process may write. It is cheap and to be asked
// right before each write. In mode none it is always true. Otherwise it is true while this process
// leads, its last renewal, or look at its lock, was begun less than RenewDeadline ago, and it is not
// in doubt: also for a process that was stopped or suspended and does not know yet that it lost its
// leadership.
func (e *Elector) Held() bool { return e.set.Mode == dsl.LeaderNone || e.fence.held() }

// Sure is Held for a write that can wait: while there is doubt, it waits until the lock was read,
// until ctx ends, or until the last renewal is too old.
func (e *Elector) Sure(ctx context.Context) bool {
	return e.set.Mode == dsl.LeaderNone || e.fence.sure(ctx)
}

// Recheck says that there is a sign of another leader. Held is false until the lock was read, which is
// done at once; when it is not this process's any more, leadership is lost. It does nothing while this
// process does not lead.
func (e *Elector) Recheck() { e.fence.recheck() }

// Conflict says that a write was refused because somebody else had written the object. That may have been another
// leader, but mostly it was a person or a controller. So the lock is read for it once in a retry period at most, and
// only the write that met the conflict waits for that; others go on. Conflict returns when the lock was read, when ctx
// ends, or when the last renewal is too old. When the lock is not this process's any more, Held is false by then.
func (e *Elector) Conflict(ctx context.Context) {
	looking := e.fence.look(e.set.RetryPeriod)
	if looking == nil {
		return
	}
	for left := e.fence.left(); left > 0; left = e.fence.left() {
		select {
		case <-looking:
			return
		case <-time.After(left):
		case <-ctx.Done():
			return
		}
	}
}

// Leading reports whether this process is the leader as far as it knows. In mode none it always
// is.
func (e *Elector) Leading() bool { return e.set.Mode == dsl.LeaderNone || e.fence.isOpen() }

// Since returns when this process began to lead, nil while it does not.
func (e *Elector) Since() *time.Time { return e.since.Load() }

// Trouble returns the error of the last request about the lock; nil if it succeeded. After an error it is not known
// whether another process leads.
func (e *Elector) Trouble() error {
	if err := e.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// asked notes how a request about the lock has ended.
func (e *Elector) asked(doing string, err error) {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		e.trouble.Store(nil)
		return
	}
	e.trouble.Store(new(fmt.Errorf("%s Lease %s: %w", doing, e.set.lockName(), err)))
}

// Leader returns the identity of the process that leads, as far as this one has heard. It is empty in mode none.
func (e *Elector) Leader() string {
	switch leader := e.leader.Load(); {
	case e.set.Mode == dsl.LeaderNone:
		return ""
	case e.Leading() && e.set.Mode == dsl.LeaderLife:
		return e.set.PodName
	case e.Leading():
		return e.set.Identity
	case leader != nil:
		return *leader
	}
	return ""
}

// term waits for leadership and holds it until it is lost, ctx ends or lead returns.
func (e *Elector) term(ctx context.Context, lead func(context.Context) error) (lost bool, err error) {
	switch e.set.Mode {
	case dsl.LeaderLease:
		return e.leaseTerm(ctx, lead)
	case dsl.LeaderLife:
		return e.lifeTerm(ctx, lead)
	}
	e.observe(true)
	defer e.observe(false)
	return false, lead(context.WithoutCancel(ctx))
}

func (s Settings) withDefaults() Settings {
	s.Mode = cmp.Or(s.Mode, dsl.LeaderNone)
	s.LeaseDuration = cmp.Or(s.LeaseDuration, DefaultLeaseDuration)
	s.RenewDeadline = cmp.Or(s.RenewDeadline, DefaultRenewDeadline)
	s.RetryPeriod = cmp.Or(s.RetryPeriod, DefaultRetryPeriod)
	return s
}

func (s Settings) fault() error {
	switch s.Mode {
	case dsl.LeaderNone:
		return nil
	case dsl.LeaderLease, dsl.LeaderLife:
	default:
		return fmt.Errorf("unknown mode %q (want %s, %s or %s)", s.Mode, dsl.LeaderNone, dsl.LeaderLease, dsl.LeaderLife)
	}
	// Other processes read the duration from the lease, in whole seconds.
	duration := s.LeaseDuration.Truncate(time.Second)
	longest := time.Duration(leaderelection.JitterFactor * float64(s.RetryPeriod))
	switch {
	case s.Client == nil:
		return errors.New("no client is given")
	case s.Name == "":
		return errors.New("the lock has no name: set leaderElection.name")
	case s.Namespace == "":
		return errors.New("the lock has no namespace: set leaderElection.namespace, or run in a pod")
	case s.Mode == dsl.LeaderLife && s.PodName == "":
		return errors.New("the pod's name is not known, which mode life needs: set POD_NAME to metadata.name by the downward API")
	case s.RetryPeriod < 0 || s.RenewDeadline <= longest:
		return fmt.Errorf("the renew deadline (%v) must be more than 1.2 times the retry period (%v)", s.RenewDeadline, s.RetryPeriod)
	case duration <= s.RenewDeadline:
		return fmt.Errorf("the lease duration (%v, in whole seconds) must be more than the renew deadline (%v)", duration, s.RenewDeadline)
	}
	return nil
}

// hold is a term from its begin to its end: it opens the fence, calls lead, and closes the fence
// after lead has returned, or when leadership is lost: when guard returns before its context ends,
// or when the fence was closed from elsewhere. Ours reports whether a lock is this process's.
//
// Lead's context does not end with ctx. Leadership is kept while lead comes to its end after that,
// and it may be lost then as at any time.
func (e *Elector) hold(
	ctx context.Context, lead func(context.Context) error, guard func(context.Context), ours holds,
) (lost bool, err error) {
	e.observe(true)
	shut := e.fence.start()
	leads, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	watch, relax := context.WithCancel(context.WithoutCancel(ctx))
	defer relax()
	var guards sync.WaitGroup
	guards.Go(func() {
		e.until(watch, shut, guard, ours)
		if watch.Err() == nil {
			lost = true
			reason := loss(shut)
			e.leave()
			leave(errLost)
			e.set.Log.Info("lost leadership", logmark.Warning, true, "lock", e.set.lockName(), "reason", reason)
		}
	})
	err = lead(leads)
	relax()
	guards.Wait()
	e.leave()
	return lost, err
}

// loss says why leadership is lost.
func loss(shut <-chan struct{}) string {
	select {
	case <-shut:
		return "the lock is not this process's any more"
	default:
		return "the lock was not renewed in time"
	}
}

// until looks after the leadership, and returns when it is lost or ctx ends.
func (e *Elector) until(ctx context.Context, shut <-chan struct{}, guard func(context.Context), ours holds) {
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	x := &examiner{set: &e.set, fence: &e.fence, ours: ours, term: e}
	helpers.Go(func() { x.examine(ctx) })
	helpers.Go(func() { x.listen(ctx) })
	helpers.Go(func() {
		defer stop()
		select {
		case <-shut:
		case <-ctx.Done():
		}
	})
	guard(ctx)
	stop()
	helpers.Wait()
}

// leave closes the fence.
func (e *Elector) leave() {
	if e.fence.stop() {
		e.observe(false)
	}
}

// observe shows in the metrics whether the process leads, and keeps since when.
func (e *Elector) observe(leading bool) {
	e.since.Store(nil)
	if leading {
		e.since.Store(new(time.Now()))
	}
	if e.set.Metrics != nil {
		e.set.Metrics.Leader(e.set.Name, leading)
	}
}

// lockName returns the namespace and the name of the lock.
func (s *Settings) lockName() string { return s.Namespace + "/" + s.Name }

// leases returns the Leases in the namespace of the lock.
func (s *Settings) leases() coordination.LeaseInterface {
	return s.Client.CoordinationV1().Leases(s.Namespace)
}

// pause waits for about the retry period. It returns false when ctx has ended.
func (s *Settings) pause(ctx context.Context) bool {
	select {
	case <-time.After(wait.Jitter(s.RetryPeriod, jitter)):
		return true
	case <-ctx.Done():
		return false
	}
}

// complaints log errors of reads of the lock, and an error that comes again once.
type complaints struct {
	set  *Settings
	last string
}

// report logs an error.
func (c *complaints) report(ctx context.Context, err error) {
	if ctx.Err() != nil || err.Error() == c.last {
		return
	}
	c.last = err.Error()
	c.set.Log.Error(err, "reading the lock failed; it is retried", "lock", c.set.lockName())
}
