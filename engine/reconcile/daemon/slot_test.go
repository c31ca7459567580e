// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
)

// TestStops holds why a daemon must stop, and whether it may write then.
func TestStops(t *testing.T) {
	for name, test := range map[string]struct {
		stop   func(d *desk, lose func())
		want   dsl.Stop
		writes bool
	}{
		"its filters do not match":    {func(d *desk, _ func()) { d.pass(false) }, dsl.StopFilters, true},
		"its object is being deleted": {func(d *desk, _ func()) { d.deleting = true; d.show("4"); d.event() }, dsl.StopDeleted, true},
		"a pass sees the deletion": {func(d *desk, _ func()) {
			d.Reconcile(Input{Key: web, UID: "one", Deleting: true, Object: d.shown.Load().Tree(), Reconcile: answers{d, true}})
		}, dsl.StopDeleted, true},
		"an event says that its object is gone": {func(d *desk, _ func()) { d.OnEvent(watch.Event{Kind: watch.Deleted, Key: web, UID: "one"}) }, dsl.StopGone, true},
		"its object is known to be gone":        {func(d *desk, _ func()) { d.Gone(web, "one") }, dsl.StopGone, true},
		"another object has the name":           {func(d *desk, _ func()) { d.Reconcile(Input{Key: web, UID: "two", Reconcile: answers{d, true}}) }, dsl.StopGone, true},
		"the operator stops":                    {func(d *desk, _ func()) { d.End(dsl.StopShutdown) }, dsl.StopShutdown, true},
		"leadership is lost":                    {func(_ *desk, lose func()) { lose() }, dsl.StopLeadership, false},
		"the first reason counts":               {func(d *desk, _ func()) { d.Gone(web, ""); d.End(dsl.StopShutdown) }, dsl.StopGone, true},
		"an event of another object does not stop it": {
			func(d *desk, _ func()) { d.OnEvent(watch.Event{Kind: watch.Deleted, Key: web, UID: "two"}) }, "", true,
		},
		"a deletion that only a listing shows does not stop it": {
			func(d *desk, _ func()) {
				d.OnEvent(watch.Event{Kind: watch.Deleted, Key: web, UID: "one", Unseen: true})
			}, "", true,
		},
		"another object that is gone does not stop it":   {func(d *desk, _ func()) { d.Gone(web, "two") }, "", true},
		"a filter that cannot be asked does not stop it": {func(d *desk, _ func()) { d.unknown = true; d.pass(false) }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				d.handler.Daemon.Func = d.untilStopped
				d.sends = func() Sent { return Sent{} }
				term, lose := context.WithCancel(t.Context())
				d.Begin(term)
				d.show("3")
				d.pass(true)
				synctest.Wait()
				test.stop(d, lose)
				synctest.Wait()
				if got := d.request.Stop(); got != test.want {
					t.Errorf("it stops because %q, want %q", got, test.want)
				}
				d.request.Patch.SetStatus("a", 1)
				if err := d.request.Flush(context.Background()); (err == nil) != test.writes {
					t.Errorf("its write comes to %v", err)
				}
				d.End(dsl.StopShutdown)
				close(d.release)
				d.Wait()
			})
		})
	}
}

// untilStopped ends when it must stop, and the test lets it go.
func (d *desk) untilStopped(ctx context.Context, r *dsl.DaemonRequest) error {
	d.runs++
	d.request = r
	<-ctx.Done()
	<-d.release
	return nil
}

// TestTheTimeToStop holds that nothing waits for a daemon whose time to stop is over, and that another one does not start before
// it has ended.
func TestTheTimeToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.handler.Daemon.Func = d.untilStopped
		d.Begin(t.Context())
		d.show("3")
		d.pass(true)
		synctest.Wait()
		d.pass(false)
		time.Sleep(30 * time.Second)
		d.pass(false) // which does not begin the time once more
		time.Sleep(30*time.Second - time.Nanosecond)
		if !d.Wants(web, "one", d.handler, false) || !d.Holds(web, "one") || d.Late() != "" {
			t.Error("its object does not wait for it within its time to stop")
		}
		time.Sleep(time.Second)
		if d.Wants(web, "one", d.handler, false) || d.Holds(web, "one") {
			t.Error("its object waits for it after its time to stop")
		}
		d.request.Patch.SetStatus("a", 1)
		if err := d.request.Flush(context.Background()); err == nil {
			t.Error("it writes after its time to stop")
		}
		if got, want := d.Late(), "watch of shop/web was asked to stop 1m0s ago and still runs"; got != want {
			t.Errorf("it is reported as %q, want %q", got, want)
		}
		d.pass(true)
		synctest.Wait()
		if d.runs != 1 {
			t.Error("another one starts before it has ended")
		}
		looked := d.looked
		close(d.release)
		synctest.Wait()
		if d.looked != looked+1 || d.Late() != "" {
			t.Errorf("after its end, %d passes are asked for, and it is reported as %q", d.looked-looked, d.Late())
		}
		d.pass(true)
		synctest.Wait()
		if d.runs != 2 {
			t.Error("no other one starts after its end")
		}
		d.End(dsl.StopShutdown)
		d.Wait()
	})
}

// TestRunsOfADaemon holds how long a daemon waits before each run, and which attempt that is. Back-offs are in tens of seconds, without
// their jitter.
func TestRunsOfADaemon(t *testing.T) {
	errNotYet := errors.New("not yet")
	for name, test := range map[string]struct {
		set  func(h *dsl.Handler)
		runs []func() error
		// changes is when the object changes, and asks when a person asks for another run.
		changes, asks time.Duration
		want          []string
	}{
		"one that is done does not run again": {nil, []func() error{ends(nil)}, 0, 0, []string{"0s 1"}},
		"one that fails runs again after its back-off, which grows": {
			nil, []func() error{ends(errNotYet), ends(errNotYet), ends(nil)}, 0, 0, []string{"0s 1", "10s 2", "20s 3"},
		},
		"one that fails for good does not run again": {nil, []func() error{ends(dsl.Permanent(errNotYet))}, 0, 0, []string{"0s 1"}},
		"one that names a time runs again then": {
			nil, []func() error{ends(dsl.Temporary(errNotYet, 7*time.Second)), ends(nil)}, 0, 0, []string{"0s 1", "7s 2"},
		},
		"one that waits has not failed": {
			nil, []func() error{ends(dsl.Waiting("Godot", 5*time.Second)), ends(nil)}, 0, 0, []string{"0s 1", "5s 1"},
		},
		"one that panics has failed": {nil, []func() error{func() error { panic("no") }, ends(nil)}, 0, 0, []string{"0s 1", "10s 2"}},
		"one with a limit of retries does not run more often": {
			func(h *dsl.Handler) { h.Retries = 1 }, []func() error{ends(errNotYet), ends(errNotYet)}, 0, 0, []string{"0s 1", "10s 2"},
		},
		"a change cuts its back-off short, and it begins to count again": {
			nil, []func() error{ends(errNotYet), ends(nil)}, 4 * time.Second, 0, []string{"0s 1", "4s 1"},
		},
		"a change at once comes a second after the run began": {
			nil, []func() error{ends(errNotYet), ends(nil)}, time.Millisecond, 0, []string{"0s 1", "1s 1"},
		},
		"a long run begins to count again": {
			nil, []func() error{ends(errNotYet), func() error { time.Sleep(time.Hour); return errNotYet }, ends(nil)}, 0, 0,
			[]string{"0s 1", "10s 2", "10s 2"},
		},
		"the first run waits for its delay": {
			func(h *dsl.Handler) { h.Delay = &dsl.Delay{Fixed: time.Minute} }, []func() error{ends(nil)}, 0, 0, []string{"1m0s 1"},
		},
		"a person cuts its back-off short, and it begins to count again": {
			nil, []func() error{ends(errNotYet), ends(errNotYet), ends(nil)}, 0, 4 * time.Second, []string{"0s 1", "4s 1", "10s 2"},
		},
		"a person cuts its wait short": {
			nil, []func() error{ends(dsl.Waiting("Godot", time.Hour)), ends(nil)}, 0, 4 * time.Second, []string{"0s 1", "4s 1"},
		},
		"a person has one run again that has failed for good": {
			nil, []func() error{ends(dsl.Permanent(errNotYet)), ends(nil)}, 0, 4 * time.Second, []string{"0s 1", "4s 1"},
		},
		"a person who asks while it runs has nothing to cut short": {
			nil, []func() error{func() error { time.Sleep(5 * time.Second); return errNotYet }, ends(nil)}, 0, 4 * time.Second, []string{"0s 1", "10s 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended, got := time.Now(), []string{}
				d := newDesk(t, func(_ context.Context, r *dsl.DaemonRequest) error {
					waited := time.Since(ended)
					if waited > 10*time.Second {
						waited = waited.Truncate(10 * time.Second)
					}
					got = append(got, fmt.Sprintf("%v %d", waited, r.Attempt))
					defer func() { ended = time.Now() }()
					if len(got) > len(test.runs) {
						return nil
					}
					return test.runs[len(got)-1]()
				})
				d.handler.Backoff = dsl.Backoff{Initial: 10 * time.Second, Max: time.Minute}
				if test.set != nil {
					test.set(d.handler)
				}
				d.Begin(t.Context())
				d.show("3")
				d.pass(true)
				if test.changes > 0 {
					time.Sleep(test.changes)
					d.spec = "another"
					d.show("4")
					d.event()
				}
				if test.asks > 0 {
					time.Sleep(test.asks)
					synctest.Wait()
					d.Again(web, d.handler)
					d.pass(true)
				}
				time.Sleep(3 * time.Hour)
				d.pass(true) // which does not start it again
				synctest.Wait()
				d.End(dsl.StopShutdown)
				d.Wait()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// ends is a run that ends at once.
func ends(err error) func() error { return func() error { return err } }

// TestChangesThatDoNotWakeADaemon holds that a back-off goes on where the daemon's view is as it has seen it.
func TestChangesThatDoNotWakeADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		d := newDesk(t, func(context.Context, *dsl.DaemonRequest) error { runs++; return errors.New("not yet") })
		d.handler.Backoff = dsl.Backoff{Initial: time.Hour, Max: time.Hour}
		d.Begin(t.Context())
		d.show("3")
		d.pass(true)
		for version := range 5 {
			time.Sleep(time.Minute)
			d.show(fmt.Sprint(4 + version))
			d.event()
		}
		synctest.Wait()
		if runs != 1 {
			t.Errorf("it ran %d times, want 1", runs)
		}
		d.End(dsl.StopShutdown)
		d.Wait()
	})
}

// TestWhoNeedsTheFinalizer holds for which daemons an object keeps the finalizer.
func TestWhoNeedsTheFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(context.Context, *dsl.DaemonRequest) error { return nil })
		d.Begin(t.Context())
		d.show("3")
		if !d.Wants(web, "one", d.handler, true) || d.Wants(web, "one", d.handler, false) {
			t.Error("one that is to start needs it, and one whose filters do not match does not")
		}
		d.pass(true)
		synctest.Wait()
		if d.Wants(web, "one", d.handler, true) || !d.Wants(web, "two", d.handler, true) {
			t.Error("one that is over needs it no more, but one of another object with the name does")
		}
		d.End(dsl.StopShutdown)
		d.Wait()
	})
}
