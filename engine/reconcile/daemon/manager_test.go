// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

var web = cache.ObjectName{Namespace: "shop", Name: "web"}

// desk is a manager with one daemon; a test says what the cache has and what writes come to.
type desk struct {
	*Manager
	t     *testing.T
	shown atomic.Pointer[cached.Object]
	// sends is what a write does.
	sends   func() Sent
	looked  int
	memo    dsl.Memo
	handler *dsl.Handler
	// request is that of the last run, and runs counts the runs. A daemon of untilStopped ends when release is closed.
	request *dsl.DaemonRequest
	runs    int
	release chan struct{}
	// deleting: the object is being deleted. unknown: its filters cannot be asked. spec is the daemon's view.
	deleting, unknown bool
	spec              string
}

func newDesk(t *testing.T, run dsl.DaemonFunc) *desk {
	t.Helper()
	d := &desk{t: t, release: make(chan struct{})}
	d.handler = &dsl.Handler{ID: "watch", Causes: []dsl.Cause{dsl.Running}, Retries: dsl.Unlimited, Daemon: &dsl.Daemon{Func: run}}
	d.Manager = New(Settings{
		Paused:   func(metav1.Object) bool { return false },
		Resource: "foos", Handlers: []*dsl.Handler{d.handler}, Grace: time.Minute, Log: logr.Discard(),
		Cache: d, Host: d, Texts: attempt.NewTexts(logr.Discard()), Metrics: ops.NewMetrics(), Events: d,
	})
	return d
}

// A desk is the cache, the host and the recorder of Events of its manager.

func (d *desk) Get(cache.ObjectName) (*cached.Object, bool) {
	o := d.shown.Load()
	return o, o != nil
}

func (d *desk) Tree(o *cached.Object) *unstructured.Unstructured { return o.Tree() }

func (d *desk) View(_ *dsl.Handler, o *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedString(o.Object, "spec")
	return spec
}

func (d *desk) Shown(o *unstructured.Unstructured) *unstructured.Unstructured { return o }
func (d *desk) Enqueue(cache.ObjectName)                                      { d.looked++ }
func (d *desk) Equip(Run, *dsl.DaemonRequest)                                 {}
func (d *desk) Send(context.Context, Write) (Sent, error)                     { return d.sends(), nil }
func (d *desk) Held(context.Context) bool                                     { return true }
func (d *desk) Logged(error) bool                                             { return false }
func (d *desk) Warn(apiruntime.Object, string, string, string)                {}

// show makes the cache have a version of the object.
func (d *desk) show(version string) *unstructured.Unstructured {
	d.t.Helper()
	o := foo(version)
	if d.spec != "" {
		o.Object["spec"] = d.spec
	}
	if d.deleting {
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	}
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{}, schema.GroupVersion{Group: "example.com", Version: "v1"}, logr.Discard())
	if err != nil {
		d.t.Fatal(err)
	}
	held, err := transformer.Transform(o.DeepCopy())
	if err != nil {
		d.t.Fatal(err)
	}
	d.shown.Store(held.(*cached.Object))
	return o
}

func foo(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo"}}
	o.SetNamespace(web.Namespace)
	o.SetName(web.Name)
	o.SetUID("one")
	o.SetResourceVersion(version)
	return o
}

// pass is a reconcile over the object that the cache has.
func (d *desk) pass(matches bool) {
	o := d.shown.Load().Tree()
	d.Reconcile(Input{
		Key: web, UID: o.GetUID(), Object: o, Starts: true, Reconcile: answers{d, matches},
	})
}

// answers are those of a reconcile at a desk, whose object matches the filters of all daemons, or of none.
type answers struct {
	desk    *desk
	matches bool
}

func (a answers) Matches(*dsl.Handler) (bool, bool) { return a.matches, !a.desk.unknown }
func (a answers) About(*dsl.Handler) *dsl.Subject   { return nil }
func (a answers) Memo() *dsl.Memo                   { return &a.desk.memo }

// event reports the object that the cache has.
func (d *desk) event() {
	d.OnEvent(watch.Event{Kind: watch.Updated, Key: web, UID: "one", Object: d.shown.Load()})
}

// TestWhichVersionsAreNews holds what a daemon hears of, whatever comes first: the cache, the event or the answer.
func TestWhichVersionsAreNews(t *testing.T) {
	wrote := func(version string) Sent {
		return Sent{Result: patch.Result{Object: foo(version), Whole: true}}
	}
	tests := map[string]struct {
		// play happens after the daemon has seen version 3, and what it sends is written as version 5.
		play func(d *desk, send func())
		want bool
	}{
		"another's version":                        {func(d *desk, _ func()) { d.show("4"); d.event() }, true},
		"a version once more":                      {func(d *desk, _ func()) { d.event() }, false},
		"an older one, as after a restored backup": {func(d *desk, _ func()) { d.show("2"); d.event() }, true},
		"one that comes after such a one": {func(d *desk, send func()) {
			send()
			d.show("5")
			d.event()
			d.show("2")
			_ = d.request.Current() // which is what it sees of the older one
			d.show("3")
			d.event()
		}, true},
		"an older one that was under way, when it has written": {func(d *desk, send func()) { send(); d.event() }, false},
		"its own, delivered after the answer":                  {func(d *desk, send func()) { send(); d.show("5"); d.event() }, false},
		"its own, delivered before the answer": {func(d *desk, send func()) {
			d.sends = func() Sent { d.show("5"); d.event(); return wrote("5") }
			send()
		}, false},
		"another's that the cache has before the event comes, and then its own": {func(d *desk, send func()) {
			d.show("4")
			d.sends = func() Sent { d.event(); return wrote("5") }
			send()
		}, true},
		"another's after its own, delivered before the answer": {func(d *desk, send func()) {
			d.sends = func() Sent { d.show("6"); d.event(); return wrote("5") }
			send()
		}, true},
		"another's in between": {func(d *desk, send func()) {
			d.sends = func() Sent { sent := wrote("5"); sent.Contended = true; return sent }
			send()
		}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d *desk
				d = newDesk(t, func(ctx context.Context, r *dsl.DaemonRequest) error {
					d.request = r
					<-ctx.Done()
					return nil
				})
				d.sends = func() Sent { return wrote("5") }
				d.Begin(t.Context())
				d.show("3")
				d.pass(true)
				synctest.Wait()
				tt.play(d, func() {
					d.request.Patch.SetStatus("a", 1)
					if err := d.request.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				})
				select {
				case <-d.request.Changes():
					if !tt.want {
						t.Error("it is notified of a change")
					}
				default:
					if tt.want {
						t.Error("it is not notified of a change")
					}
				}
				d.End(dsl.StopShutdown)
				d.Wait()
			})
		})
	}
}

// TestNothingIsKeptOfAnObjectThatIsGone holds that what is over is known as long as its object, and no longer.
func TestNothingIsKeptOfAnObjectThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		d := newDesk(t, func(context.Context, *dsl.DaemonRequest) error { runs++; return nil })
		term, lose := context.WithCancel(t.Context())
		d.Begin(term)
		d.show("3")
		for range 3 {
			d.pass(true)
			synctest.Wait()
		}
		if runs != 1 || len(d.objects) != 1 {
			t.Errorf("it ran %d times, and %d keys are known", runs, len(d.objects))
		}
		lose()
		synctest.Wait()
		d.shown.Store(nil)
		d.Begin(t.Context())
		if len(d.objects) != 0 {
			t.Error("a key is known of an object that went between the terms")
		}
		d.show("3")
		d.pass(true)
		synctest.Wait()
		d.Reconcile(Input{Key: web})
		if runs != 2 || len(d.objects) != 0 {
			t.Errorf("it ran %d times, and %d keys are known", runs, len(d.objects))
		}
		d.End(dsl.StopShutdown)
		d.Wait()
	})
}

// TestADaemonThatEndsItsGoroutine holds that the run has failed, and that the daemon runs again after its back-off.
func TestADaemonThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		d := newDesk(t, func(ctx context.Context, _ *dsl.DaemonRequest) error {
			if runs++; runs == 1 {
				runtime.Goexit()
			}
			<-ctx.Done()
			return nil
		})
		d.Begin(t.Context())
		d.show("3")
		for range 3 {
			d.pass(true)
			time.Sleep(time.Minute)
		}
		d.End(dsl.StopShutdown)
		d.Wait()
		if runs != 2 {
			t.Errorf("it ran %d times, want 2", runs)
		}
	})
}
