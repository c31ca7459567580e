// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// fake is a resource without feeds, or with some. Its one worker runs a handler that needs some time, and heeds its
// context or not.
type fake struct {
	name  string
	needs time.Duration
	deaf  bool
	terms int
	feeds []*feed.Feed
	end   func() // nil does nothing
}

func (f *fake) Name() string        { return f.name }
func (f *fake) Feeds() []*feed.Feed { return f.feeds }
func (f *fake) Busy() []string      { return []string{"handler of " + f.name} }
func (f *fake) End() {
	if f.end != nil {
		f.end()
	}
}

func (f *fake) work(ctx context.Context) {
	done := ctx.Done()
	if f.deaf {
		done = nil
	}
	select {
	case <-done:
	case <-time.After(f.needs):
	}
}

// settled are indexes that can be read.
type settled struct{}

func (settled) Settled(context.Context) {}

func (f *fake) Begin() (int, func(context.Context)) {
	f.terms++
	return 1, f.work
}

func TestControllersWork(t *testing.T) {
	const grace = 20 * time.Second
	tests := map[string]struct {
		resource fake
		loss     bool // the term ends by the loss of leadership
		took     time.Duration
		err      string
	}{
		"a handler ends within the grace period":             {fake{needs: 15 * time.Second}, false, 15 * time.Second, ""},
		"a handler is cut off after the grace period":        {fake{needs: time.Hour}, false, grace, ""},
		"a handler that hears nothing is named":              {fake{needs: time.Hour, deaf: true}, false, grace + stuck, "handler of a"},
		"there is no grace after a loss of leadership":       {fake{needs: time.Hour}, true, 0, ""},
		"no term begins beside a handler that hears nothing": {fake{needs: time.Hour, deaf: true}, true, time.Hour, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r controllers[*fake]
				one := &test.resource
				one.name = "a"
				if err := r.Start(one); err != nil {
					t.Fatal(err)
				}
				if err := r.Start(&fake{name: "a"}); err == nil {
					t.Error("two resources have one name")
				}
				life, quit := context.WithCancel(t.Context())
				defer quit()
				r.Run(life)
				ctx, stop := context.WithCancel(t.Context())
				leads, lose := context.WithCancel(context.WithoutCancel(ctx))
				defer lose()
				if test.loss {
					defer stop()
					stop = lose
				}
				var at phase
				done := make(chan error)
				go func() {
					done <- r.Work(ctx, leads, term{grace: grace, indexes: settled{}, phase: &at, log: logr.Discard()})
				}()
				synctest.Wait()
				if got := at.why(); got != dsl.StopResource {
					t.Errorf("a resource that stops in the term stops because %q", got)
				}
				begun := time.Now()
				stop()
				err := <-done
				if took := time.Since(begun); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("the error is %v, want one with %q", err, test.err)
				}
				want := dsl.StopShutdown
				if test.loss {
					want = dsl.StopLeadership
				}
				if got := at.why(); got != want || one.terms != 1 {
					t.Errorf("it stops because %q, want %q, and has begun %d terms", got, want, one.terms)
				}
				time.Sleep(2 * time.Hour) // for the one that hears nothing
			})
		})
	}
}

// TestControllersStartAndStop holds that a resource takes part in a term that lasts, and that nothing of it is left.
func TestControllersStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r controllers[*fake]
		ctx, stop := context.WithCancel(t.Context())
		r.Run(ctx)
		done := make(chan error)
		go func() {
			done <- r.Work(ctx, context.WithoutCancel(ctx), term{indexes: settled{}, phase: &phase{}, log: logr.Discard()})
		}()
		synctest.Wait()
		late := &fake{name: "late", needs: 3 * time.Second}
		if err := r.Start(late); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if late.terms != 1 {
			t.Errorf("it takes part in %d terms", late.terms)
		}
		begun := time.Now()
		r.Stop(t.Context(), late, time.Minute)
		r.Stop(t.Context(), late, time.Minute)
		if took := time.Since(begun); took != late.needs {
			t.Errorf("it stopped after %v", took)
		}
		if left := slices.Collect(r.All); len(left) > 0 {
			t.Errorf("there still is %v", left)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.Wait()
	})
}

// away is an API server that is away, and counts who asks.
type away struct{ asked atomic.Int32 }

// RoundTrip answers a request.
func (a *away) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked.Add(1)
	return nil, errors.New("it is away")
}

// TestAResourceThatIsBeingStoppedIsNotBegun holds that a stop ends also where the process begins to run beside it, that
// the feeds do not begin then, and that nothing waits for them.
func TestAResourceThatIsBeingStoppedIsNotBegun(t *testing.T) {
	for name, before := range map[string]bool{"the stop begins before the run": true, "the run begins before the stop": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r controllers[*fake]
				life, quit := context.WithCancel(t.Context())
				defer quit()
				var server away
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server", Transport: &server})
				if err != nil {
					t.Fatal(err)
				}
				brought := feed.New(
					feed.Cluster{
						Catalog: catalog.New(client.Discovery(), nil, client.AuthorizationV1()),
						Scope:   feed.NewScope(feed.ScopeSettings{}), Outages: transport.NewOutages(logr.Discard()),
					},
					feed.Settings{Name: dsl.ResourceName{Resource: "foos", Version: "v1", Group: "example.com"}},
				)
				one := &fake{name: "a", feeds: []*feed.Feed{brought}}
				settled := make(chan struct{})
				run := func() {
					r.Run(life)
					go func() {
						defer close(settled)
						r.Settled(life)
					}()
					synctest.Wait()
				}
				if before {
					one.end = run
				}
				if err := r.Start(one); err != nil {
					t.Fatal(err)
				}
				if !before {
					run()
				}
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					r.Stop(t.Context(), one, time.Minute)
				}()
				time.Sleep(time.Hour)
				for what, done := range map[string]chan struct{}{"the stop": stopped, "the wait for feeds": settled} {
					select {
					case <-done:
					default:
						t.Errorf("%s has not ended", what)
					}
				}
				if left := slices.Collect(r.All); len(left) > 0 {
					t.Errorf("there still is %v", left)
				}
				if n := server.asked.Load(); (n > 0) == before {
					t.Errorf("its feeds asked %d times", n)
				}
				quit()
				r.Wait()
				<-stopped
			})
		})
	}
}
