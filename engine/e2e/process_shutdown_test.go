// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const (
	// crowd is the number of Foos under load.
	crowd = 50
	// grace is longer than any wait here: a stop that needs it fails.
	grace = time.Hour
	// stopping is what the log says first of a stop.
	stopping = "operator stops"
)

// churn makes Foos and changes them all the time, until the function that it returns is called.
func churn(t *testing.T, ns string, number int) (stop func()) {
	t.Helper()
	for i := range number {
		plane.Objects(foos, ns).Create(t, foo(crowded(i), 1))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	client := plane.Dynamic().Resource(foosGVR).Namespace(ns)
	running.Go(func() {
		for turn := 0; ctx.Err() == nil; turn++ {
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, 1+(turn/number+1)%2)
			_, err := client.Patch(ctx, crowded(turn%number), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				t.Errorf("changing a Foo: %v", err)
				return
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}

func crowded(i int) string { return fmt.Sprint("crowd-", i) }

// TestProgramStopsUnderLoad ends the program as the kubelet does, while all its objects change.
func TestProgramStopsUnderLoad(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("shutdown")
	user.AllowIn(t, ns, append(fooRules(), lockRules(lock)...)...)
	proxy := cluster.NewProxy(t, user.Config())
	// Half of the Events are not sent before the stop begins, nor do the handlers end by then.
	gate := make(chan struct{})
	events := cluster.On("create", "events")
	proxy.Inject(cluster.When{Match: events, Skip: crowd / 2}, cluster.Block(gate))
	mark := plane.Mark(t)
	program := plane.Operator(t, cluster.Launch{
		Config: proxy.Config(), Env: []string{"POD_NAMESPACE=" + ns},
		Args: []string{"run", "--config", "samples/foo/operator.yaml", "-n", ns, "--leader-elect", "--grace-period", grace.String()},
	})
	stop := churn(t, ns, crowd)
	proxy.Await(t, crowd/2+5, events) // in the midst of the first passes
	caught := make(chan string, 1)
	proxy.Inject(cluster.When{Match: cluster.On("write", "foos/status")}, func(x *cluster.Exchange) {
		select {
		case caught <- x.Name:
		default:
		}
		x.Wait(gate)
		x.Forward()
	})
	name := <-caught
	program.Signal(t, syscall.SIGTERM)
	program.Await(t, stopping)
	stopped := plane.Mark(t)
	close(gate)
	if exit := program.Wait(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	stop()
	mustLogNoError(t, program.Lines)
	// The churn may have changed the object since it was read.
	if writes := plane.Writes(t, user.Name, stopped).Of("foos", name).WithoutConflicts(); len(writes) != 1 || writes[0].Code != http.StatusOK {
		t.Errorf("the handler that was caught by the stop made the writes %v, want its status", writes)
	}
	var lease coordinationv1.Lease
	decode(t, plane.Objects(leases, ns).Get(t, lock), &lease)
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the lock is still held by %s", *holder)
	}
	mustHaveSentEvents(t, ns, plane.Writes(t, user.Name, mark))
}

// mustHaveSentEvents holds that each Foo whose status was written has the Event that came before.
func mustHaveSentEvents(t *testing.T, ns string, writes cluster.Writes) {
	t.Helper()
	list, err := plane.Kubernetes().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Synced"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, event := range list.Items {
		seen[event.InvolvedObject.Name] = true
	}
	reported := 0
	for _, w := range writes.Of("foos", "") {
		if w.Subresource == "status" && w.Code == 200 {
			reported++
			if !seen[w.Name] {
				t.Errorf("%s has a status and no Event", w.Name)
			}
		}
	}
	if reported == 0 {
		t.Error("no status was written")
	}
}

// TestEngineStopsUnderLoad holds that handlers come to their end, and that nothing is left behind.
func TestEngineStopsUnderLoad(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("stops")
	user.AllowIn(t, ns, append(fooRules(), lockRules("stops-leader")...)...)
	var begun, ended, cut atomic.Int64
	gate := make(chan struct{})
	op := dsl.New("stops")
	op.Scope.Namespaces = []string{ns}
	op.Settings.GracePeriod = grace
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: ns}
	op.Resource(foos, func(r *dsl.Resource) {
		r.OnReconcile("work", func(ctx context.Context, r *dsl.Request) error {
			defer ended.Add(1)
			if begun.Add(1) > crowd {
				select { // until the stop has begun
				case <-gate:
				case <-ctx.Done():
					cut.Add(1)
				}
			}
			r.Events.Event(dsl.Normal, "Worked", "It is done")
			r.Patch.SetStatus("availableReplicas", r.Object.GetGeneration())
			return nil
		})
	})
	running := cluster.Run(t, op, engine.Settings{Config: user.Config()})
	stop := churn(t, ns, crowd)
	eventually(t, "work", func() (bool, string) { return begun.Load() > crowd, fmt.Sprint(begun.Load()) })
	running.Cancel()
	running.Await(t, stopping)
	close(gate)
	running.Stop(t)
	stop()
	if begun.Load() != ended.Load() || cut.Load() != 0 {
		t.Errorf("of %d handlers %d ended, and %d were cut off", begun.Load(), ended.Load(), cut.Load())
	}
	mustLogNoError(t, running.Lines)
}

// TestHandlerThatNeverReturns holds that the engine names it and ends all the same.
func TestHandlerThatNeverReturns(t *testing.T) {
	t.Parallel()
	ns, end := plane.Namespace(t), make(chan struct{})
	defer close(end)
	began := make(chan struct{})
	op := dsl.New("hangs")
	op.Scope.Namespaces = []string{ns}
	op.Settings.GracePeriod = 100 * time.Millisecond
	op.Resource(foos, func(r *dsl.Resource) {
		r.OnReconcile("hang", func(context.Context, *dsl.Request) error {
			close(began)
			<-end
			return nil
		})
	})
	running := cluster.Run(t, op, engine.Settings{Config: plane.Config()})
	plane.Objects(foos, ns).Create(t, foo("a", 1))
	<-began
	running.Cancel()
	running.Await(t, "operator stopped")
	found := &complaints{TB: t} // the handler's goroutine is left, as it must be
	running.Lingering = 0
	err := running.Crash(found)
	if want := fmt.Sprintf("stopping operator: handlers are still running: hang of %s/a", ns); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if len(found.all) != 1 {
		t.Errorf("complaints are %q, want one about the handler", found.all)
	}
}
