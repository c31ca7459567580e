// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
)

// Settings say what the cluster is like.
type Settings struct {
	// Nodes is the number of nodes, which are named node-0 and so on. 0 means 1.
	Nodes int
	// Plan says what becomes of objects. Nil means that everything becomes ready at once.
	Plan *Plan
	// Events says that the controllers record Events, as those of a cluster do.
	Events bool
	// AllKinds says that the server serves all kinds of a usual cluster. Then Services have EndpointSlices and Endpoints, and a
	// VolumeAttributesClass stays while it is in use.
	AllKinds bool
	// Clock tells the time of objects, and when something is due. Nil means the clock of the machine.
	Clock clock.Clock
}

// Run makes workloads come alive until the context ends. See [New] and [Controllers.Run].
func Run(ctx context.Context, config *rest.Config, settings Settings) error {
	c, err := New(config, settings)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// loop brings one object after the other a step further.
type loop struct {
	link   link
	plan   *Plan
	clock  clock.Clock
	nodes  int
	queue  *queue
	kinds  []kind
	caches map[string]*cache
	// versions are those that the watches have reached, and asks get channels that are closed when nothing is left to do.
	versions versions
	asks     chan chan struct{}

	// Only the loop's goroutine uses what follows.
	ctx context.Context
	// moved: the step has written other objects, so what it counts is going to change.
	moved bool
	// waits are when the delays of objects began.
	waits map[key]wait
	// awaited has the Pods that wait for claims.
	awaited map[key][]key
	// failures are how often in a row an object's step has failed.
	failures                  map[key]int
	pods, services, balancers *pool
	// events records Events; nil if there are to be none.
	events *recorder
	// allKinds is that of the settings.
	allKinds bool
}

// wait is a delay of one object.
type wait struct {
	uid   types.UID
	what  string
	since time.Time
}

func (l *loop) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var sources sync.WaitGroup
	defer sources.Wait()
	defer stop()
	defer l.queue.close()
	changed, end := l.plan.subscribe()
	defer end()
	l.ctx = ctx
	for _, k := range l.kinds { // one after the other, as the stack of a goroutine grows with its first request
		events, version := l.open(ctx, k, "")
		if events == nil {
			return nil
		}
		sources.Go(func() { l.follow(ctx, k, events, version) })
	}
	l.prepare()
	var asked []chan struct{}
	for {
		l.work()
		if len(l.queue.signal) == 0 && len(changed) == 0 {
			for _, idle := range asked {
				close(idle)
			}
			asked = nil
		}
		select {
		case idle := <-l.asks:
			asked = append(asked, idle)
		case <-l.queue.signal:
		case <-changed:
			l.all()
		case <-ctx.Done():
			return nil
		}
	}
}

// prepare does what needs to know all objects.
func (l *loop) prepare() {
	l.pods, l.services, l.balancers = newPool(10, 244), newPool(10, 96), newPool(198, 18)
	for _, p := range listOf[*corev1.Pod](l.caches["Pod"].all()) {
		l.pods.note(p.Status.PodIP)
	}
	for _, s := range listOf[*corev1.Service](l.caches["Service"].all()) {
		l.services.note(s.Spec.ClusterIP)
		for _, in := range s.Status.LoadBalancer.Ingress {
			l.balancers.note(in.IP)
		}
	}
	for _, name := range l.ownNodes() {
		l.queue.add(key{kind: "Node", name: name})
	}
}

// ownNodes are the names of the nodes that there are always.
func (l *loop) ownNodes() (out []string) {
	for n := range l.nodes {
		out = append(out, fmt.Sprint("node-", n))
	}
	return out
}

// all queues all objects.
func (l *loop) all() {
	for _, k := range l.kinds {
		for name := range l.caches[k.name].keys() {
			l.queue.add(key{k.name, name.Namespace, name.Name})
		}
	}
}

// patience is how often a name may be taken before that is an error.
const patience = 5

// work handles the keys that are due.
func (l *loop) work() {
	for l.ctx.Err() == nil {
		k, found := l.queue.next()
		if !found {
			return
		}
		err := l.handle(k)
		switch {
		case err == nil:
			delete(l.failures, k)
			continue
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, context.Canceled):
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			continue // the object will be deleted
		case apierrors.IsAlreadyExists(err) && l.failures[k] < patience: // it is garbage, which goes soon
		case apierrors.IsForbidden(err) && l.failures[k] > 0: // the log says so, and admission seldom changes its mind
		default:
			resource := l.row(k.kind).resource.GroupResource().String()
			logr.FromContextOrDiscard(l.ctx).Error(err, "Workload cannot come alive", "resource", resource, "namespace", k.namespace, "name", k.name)
		}
		l.queue.after(k, min(50*time.Millisecond<<min(l.failures[k], 20), 10*time.Second))
		l.failures[k]++
	}
}

// handle brings an object a step further, as its rule says.
func (l *loop) handle(k key) error {
	row := l.kinds[slices.IndexFunc(l.kinds, func(row kind) bool { return row.name == k.kind })]
	o := l.caches[k.kind].get(k.namespace, k.name)
	if o == nil {
		delete(l.waits, k)
		switch {
		case k.kind == "Node" && slices.Contains(l.ownNodes(), k.name): // others stay away when somebody deletes them
			return l.makeNode(k.name)
		case k.kind == "Service" && l.allKinds:
			return l.withdraw(k)
		}
		return nil
	}
	rule := l.plan.of(l.line(o, row))
	switch {
	case !rule.Hold:
		l.moved = false
		return row.step(l, o, rule)
	case row.held != nil:
		return row.held(l, o)
	}
	return nil
}

// line returns an object and those that control it, for the plan.
func (l *loop) line(o object, row kind) []reference {
	out := []reference{{row.name, row.resource.Resource, o.GetNamespace(), o.GetName()}}
	for ref := metav1.GetControllerOfNoCopy(o); ref != nil && len(out) < 5; {
		i := slices.IndexFunc(l.kinds, func(k kind) bool { return k.name == ref.Kind })
		if i < 0 {
			break
		}
		out = append(out, reference{ref.Kind, l.kinds[i].resource.Resource, o.GetNamespace(), ref.Name})
		owner := l.caches[ref.Kind].get(o.GetNamespace(), ref.Name)
		if owner == nil {
			break
		}
		ref = metav1.GetControllerOfNoCopy(owner)
	}
	return out
}

// waited reports whether a delay of an object is over, and queues it for its end if not.
func (l *loop) waited(row string, o metav1.Object, what string, d time.Duration) bool {
	k := key{row, o.GetNamespace(), o.GetName()}
	w, found := l.waits[k]
	if !found || w.uid != o.GetUID() || w.what != what {
		w = wait{o.GetUID(), what, l.clock.Now()}
		l.waits[k] = w
	}
	left := l.until(w.since.Add(d))
	if left > 0 {
		l.queue.after(k, left)
	}
	return left <= 0
}

// now returns the time as Kubernetes writes it: whole seconds.
func (l *loop) now() metav1.Time { return metav1.NewTime(l.clock.Now()).Rfc3339Copy() }

// until returns the time that is left until another one.
func (l *loop) until(at time.Time) time.Duration { return at.Sub(l.clock.Now()) }

// again queues an object that has moved others: it says what it counts when they are where they are to be.
func (l *loop) again(row string, o metav1.Object) error {
	l.queue.add(key{row, o.GetNamespace(), o.GetName()})
	return nil
}

// later queues an object after a while.
func (l *loop) later(row string, o metav1.Object, d time.Duration) {
	l.queue.after(key{row, o.GetNamespace(), o.GetName()}, d)
}
