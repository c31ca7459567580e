// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

var (
	leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	podResource   = schema.GroupResource{Resource: "pods"}
)

// cluster holds one Lease and some pods with the API server's rules for versions, UIDs and
// preconditions, which the fake clientset lacks.
type cluster struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	pods    map[string]*corev1.Pod
	version int
}

func newCluster(pods ...string) *cluster {
	c := &cluster{pods: map[string]*corev1.Pod{}}
	for _, name := range pods {
		c.addPod(name, "uid-"+name)
	}
	return c
}

func (c *cluster) addPod(name, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[name] = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(uid)},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// change lets a test do something to the cluster that is not in its rules.
func (c *cluster) change(do func(c *cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c)
	if c.lease != nil {
		c.version++
		c.lease.ResourceVersion = strconv.Itoa(c.version)
	}
}

// stored returns the Lease, empty when there is none.
func (c *cluster) stored() *coordinationv1.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease == nil {
		return &coordinationv1.Lease{}
	}
	return c.lease.DeepCopy()
}

func (c *cluster) holder() string {
	if holder := c.stored().Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// client returns a clientset of its own for each process. Before each request it calls fault,
// which may wait, and may return an error instead of an answer.
func (c *cluster) client(fault func(request string) error) clientset {
	client := fake.NewClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if err := fault(action.GetVerb() + " " + action.GetResource().Resource); err != nil {
			return true, nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		object, err := c.answer(action)
		return true, object, err
	})
	return clientset{client}
}

// clientset is a fake clientset that is a [Client].
type clientset struct{ kubernetes.Interface }

func (c clientset) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c *cluster) answer(action clienttesting.Action) (runtime.Object, error) {
	if get, ok := action.(clienttesting.GetAction); ok && action.GetResource().Resource == "pods" {
		if pod, found := c.pods[get.GetName()]; found {
			return pod.DeepCopy(), nil
		}
		return nil, apierrors.NewNotFound(podResource, get.GetName())
	}
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		if c.lease != nil {
			return nil, apierrors.NewAlreadyExists(leaseResource, "lock")
		}
		c.version++
		return c.store(action.GetObject(), types.UID(fmt.Sprint("lease-", c.version))), nil
	case clienttesting.UpdateActionImpl:
		if c.lease == nil {
			return nil, apierrors.NewNotFound(leaseResource, "lock")
		}
		if action.GetObject().(*coordinationv1.Lease).ResourceVersion != c.lease.ResourceVersion {
			return nil, apierrors.NewConflict(leaseResource, "lock", nil)
		}
		return c.store(action.GetObject(), c.lease.UID), nil
	case clienttesting.DeleteActionImpl:
		return nil, c.remove(action.DeleteOptions.Preconditions)
	}
	if c.lease == nil {
		return nil, apierrors.NewNotFound(leaseResource, "lock")
	}
	return c.lease.DeepCopy(), nil
}

func (c *cluster) store(object runtime.Object, uid types.UID) *coordinationv1.Lease {
	c.version++
	c.lease = object.DeepCopyObject().(*coordinationv1.Lease)
	c.lease.UID, c.lease.ResourceVersion = uid, strconv.Itoa(c.version)
	return c.lease.DeepCopy()
}

func (c *cluster) remove(only *metav1.Preconditions) error {
	switch {
	case c.lease == nil:
		return apierrors.NewNotFound(leaseResource, "lock")
	case only == nil || only.UID == nil || *only.UID != c.lease.UID,
		only.ResourceVersion != nil && *only.ResourceVersion != c.lease.ResourceVersion:
		return apierrors.NewConflict(leaseResource, "lock", nil)
	}
	c.lease = nil
	return nil
}

// process is one that wants to lead.
type process struct {
	*Elector
	name string
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	fault   func(request string) error
	err     error // what Run returned
	number  int   // of terms
	leading bool  // lead runs
	ending  error // the cause with which lead's last context ended
	lines   []string
	changes []bool
}

// start runs a process that works well.
func (c *cluster) start(t *testing.T, name string, mode dsl.LeaderMode, lead func(context.Context) error) *process {
	t.Helper()
	return c.startWith(t, name, mode, lead, nil)
}

// watching runs a process in mode lease that watches the lock.
func (c *cluster) watching(t *testing.T, name string, watch func() (apiwatch.Interface, error)) *process {
	t.Helper()
	client := fake.NewClientset()
	client.PrependWatchReactor("leases", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
		stream, err := watch()
		return true, stream, err
	})
	return c.startWith(t, name, dsl.LeaderLease, nil, nil, func(s *Settings) { s.Watcher = client })
}

// changes records in a process when it begins and ceases to lead.
type changes process

func (c *changes) Leader(_ string, leading bool) {
	(*process)(c).locked(func() { c.changes = append(c.changes, leading) })
}

// startWith runs a process with a fault from the begin. Lead, when it is nil, works until its
// context ends.
func (c *cluster) startWith(
	t *testing.T, name string, mode dsl.LeaderMode, lead func(context.Context) error, fault func(string) error,
	adjust ...func(*Settings),
) *process {
	t.Helper()
	p := &process{name: name, done: make(chan struct{}), fault: fault}
	log := funcr.New(func(_, line string) {
		p.locked(func() { p.lines = append(p.lines, line) })
	}, funcr.Options{})
	set := Settings{
		LeaderElection: dsl.LeaderElection{Mode: mode, Name: "lock", Namespace: "ns"}, Identity: name, PodName: name, Log: log,
		Client: c.client(p.request), Metrics: (*changes)(p),
	}
	for _, change := range adjust {
		change(&set)
	}
	var err error
	if p.Elector, err = New(set); err != nil {
		t.Fatal(err)
	}
	if lead == nil {
		lead = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() {
		defer close(p.done)
		err := p.Run(ctx, func(term context.Context) error {
			ctx, leave := either(ctx, term)
			defer leave()
			p.locked(func() { p.leading, p.number = true, p.number+1 })
			err := lead(ctx)
			p.locked(func() { p.leading, p.ending = false, context.Cause(ctx) })
			return err
		})
		p.locked(func() { p.err = err })
	}()
	return p
}

// either returns a context that ends with each of two, for the same cause.
func either(ctx, term context.Context) (context.Context, func()) {
	both, cancel := context.WithCancelCause(term)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return both, func() { stop(); cancel(nil) }
}

// drainFor is work that takes its time to end.
func drainFor(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		<-time.After(d)
		return nil
	}
}

func (p *process) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *process) request(what string) error {
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(what)
}

// breaks makes the process's requests fail, or work again with nil.
func (p *process) breaks(fault func(request string) error) { p.locked(func() { p.fault = fault }) }

var errDown = errors.New("it is down")

func down(string) error { return errDown }

// dies ends the process without a chance to release anything.
func (p *process) dies() {
	p.breaks(down)
	p.stop()
	<-p.done
}

// ends stops the process and returns Run's result.
func (p *process) ends() error {
	p.stop()
	<-p.done
	return p.err
}

func (p *process) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leading
}

// terms returns how many terms there were, and how the last one that has ended did.
func (p *process) terms() (number int, ending error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number, p.ending
}

// logged returns how many lines have the text.
func (p *process) logged(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, line := range p.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// pass lets time go by until everything has settled.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until waits for a condition and returns how long that took, to a tenth of a second.
func until(t *testing.T, what string, met func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !met() {
		if time.Since(start) > time.Hour {
			t.Fatalf("never: %s", what)
		}
		pass(100 * time.Millisecond)
	}
	return time.Since(start)
}

// between fails when a time is out of bounds.
func between(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s took %v, want %v to %v", what, got, least, most)
	}
}

// state fails when the process does not look as it should.
func (p *process) state(t *testing.T, when string, leads, held bool) {
	t.Helper()
	if p.leads() != leads || p.Leading() != leads || p.Held() != held {
		t.Errorf("%s: %s works %v, Leading %v, Held %v; want %v and %v",
			when, p.name, p.leads(), p.Leading(), p.Held(), leads, held)
	}
}
