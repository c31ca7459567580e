// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

var (
	forbidden = apierrors.NewForbidden(foos.GroupResource(), "", errors.New("no"))
	notFound  = apierrors.NewNotFound(foos.GroupResource(), "")
)

// changes remembers the calls of Settings.Changed.
type changes struct {
	mu     sync.Mutex
	states []string
}

func (c *changes) on(src Source, s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states = append(c.states, fmt.Sprintf("%s synced=%t fault=%v", src.GVR.Resource, s.Synced, s.Fault))
}

func (c *changes) take() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.states
	c.states = []string{}
	return out
}

func TestFaultsComeAndGo(t *testing.T) {
	const (
		listForbidden  = `foos synced=false fault=listing foos.v1.example.com: foos.example.com is forbidden: no`
		watchForbidden = `foos synced=true fault=watching foos.v1.example.com: foos.example.com is forbidden: no`
		listMissing    = `foos synced=false fault=listing foos.v1.example.com: foos.example.com "" not found`
		synced         = `foos synced=true fault=<nil>`
	)
	tests := map[string]struct {
		listing, watching error
		want              []string // the last states
		is                func(error) bool
	}{
		"listing is forbidden":              {forbidden, nil, []string{listForbidden}, apierrors.IsForbidden},
		"watching is forbidden":             {nil, forbidden, []string{watchForbidden}, apierrors.IsForbidden},
		"both are forbidden":                {forbidden, forbidden, []string{listForbidden}, apierrors.IsForbidden},
		"the resource is not there":         {notFound, notFound, []string{listMissing}, apierrors.IsNotFound},
		"nothing, which is reported once":   {nil, nil, []string{synced}, nil},
		"the version is too old to list it": {apierrors.NewResourceExpired("old"), nil, []string{}, nil},
	}
	for name, tt := range tests {
		for client, stream := range map[string]bool{"that lists": false, "that streams lists": true} {
			t.Run(name+" to a client "+client, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					notified := changes{states: []string{}}
					var lines log
					settings := s.settings()
					settings.Changed, settings.Log = notified.on, lines.logger()
					if stream {
						settings.Dynamic = streaming{s.dynamic}
					}
					set := New(settings)
					defer set.Close()
					s.set(tt.listing, tt.watching)
					h := mustOpen(t, set, Source{GVR: foos}, ignore)
					if stream && tt.watching == nil {
						advance(10 * time.Minute)
						wantSame(t, []string{synced}, notified.take()) // it has no need to list
						return
					}
					advance(10 * time.Minute)
					got := notified.take()
					if len(got) > 2 {
						t.Errorf("notified of %q, want the list and the fault but once", got)
					}
					wantSame(t, tt.want, got[max(len(got)-1, 0):])
					if fault := h.State().Fault; tt.is != nil && !tt.is(fault) {
						t.Errorf("the state shows the fault %v", fault)
					}
					faults := 0
					if tt.is != nil {
						faults = 1
					}
					if n := lines.count("source fails"); n != faults {
						t.Errorf("the fault was logged %d times, want %d", n, faults)
					}

					s.set(nil, nil)
					advance(2 * time.Minute)
					if state := h.State(); state.Fault != nil || !state.Synced {
						t.Errorf("when all is well again, the state is %+v", state)
					}
					if n := lines.count("works again"); n != faults {
						t.Errorf("the end of the fault was logged %d times, want %d", n, faults)
					}
				})
			})
		}
	}
}

func TestASourceHealsTheMomentItIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var notified changes
		settings := s.settings()
		settings.Changed = notified.on
		set := New(settings)
		defer set.Close()
		s.set(forbidden, nil)
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(time.Minute)
		notified.take()
		before := time.Now()
		s.set(nil, nil)
		advance(time.Minute)
		wantSame(t, []string{"foos synced=false fault=<nil>", "foos synced=true fault=<nil>"}, notified.take())
		if state := h.State(); !state.LastEvent.After(before) {
			t.Errorf("the state is %+v, want the time of its last event to be when the list came", state)
		}
	})
}

func TestASourceHealsTheMomentItIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{health: newHealth(Source{GVR: foos}, logr.Discard(), nil)}
		var answer error = forbidden
		call := func(context.Context, listOptions) (apiwatch.Interface, error) { return apiwatch.NewFake(), answer }
		_, err := o.watch(t.Context(), options, call)
		if f := o.health.now().Fault; !errors.Is(f, err) || err == nil {
			t.Errorf("the fault is %v, want %v", f, err)
		}
		answer = nil
		w, err := o.watch(t.Context(), options, call)
		if f := o.health.now().Fault; f != nil || err != nil {
			t.Errorf("the fault is %v (%v), want none", f, err)
		}
		w.Stop()
		o.streams.Wait()
	})
}

// A server before 1.34 refuses to stream lists. That is no fault.
func TestAServerThatCannotStreamListsIsNotFaulty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var notified changes
		settings := s.settings()
		settings.Changed = notified.on
		settings.Dynamic = streaming{s.dynamic}
		set := New(settings)
		defer set.Close()
		s.set(nil, apierrors.NewInvalid(foosKind, "", nil))
		s.dynamic.PrependWatchReactor("foos", refuseStreams(s))
		mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(time.Minute)
		wantSame(t, []string{"foos synced=true fault=<nil>"}, notified.take())
	})
}

func TestLastEventMovesWithTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(time.Minute)
		if got, want := h.State().LastEvent, time.Now().Add(-time.Minute); !got.Equal(want) {
			t.Errorf("after the list the last event was at %v, want %v", got, want)
		}
		s.put("a", "1")
		synctest.Wait()
		if got := h.State().LastEvent; !got.Equal(time.Now()) {
			t.Errorf("after an event the last event was at %v, want %v", got, time.Now())
		}
		advance(time.Minute)
		s.send(apiwatch.Bookmark, s.bookmark(""))
		synctest.Wait()
		if got := h.State().LastEvent; !got.Equal(time.Now()) {
			t.Errorf("after a bookmark the last event was at %v, want %v", got, time.Now())
		}
	})
}

func TestStreamsThatKeepBreakingAreAFault(t *testing.T) {
	var notified changes
	broken := errors.New("connection lost")
	h := newHealth(Source{GVR: foos}, logr.Discard(), notified.on)
	h.opened(nil)
	h.broke(broken)
	h.opened(nil)
	if f := h.now().Fault; f != nil {
		t.Errorf("one broken stream is the fault %v", f)
	}
	h.broke(broken)
	h.opened(nil)
	if f := h.now().Fault; !errors.Is(f, broken) {
		t.Errorf("the fault is %v, want %v: a stream that opens proves nothing", f, broken)
	}
	h.flowed(true)
	h.broke(apierrors.NewResourceExpired("old"))
	h.broke(apierrors.NewResourceExpired("old"))
	if f := h.now().Fault; f != nil {
		t.Errorf("the fault is %v after an event, want none", f)
	}
	if len(notified.states) != 2 {
		t.Errorf("notified of %q, want the fault and its end", notified.states)
	}
}

func TestAQuietStreamHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{health: newHealth(Source{GVR: foos}, logr.Discard(), nil)}
		o.health.broke(forbidden)
		o.health.broke(forbidden)
		inner := apiwatch.NewFake()
		w := o.forward(t.Context(), inner, false, 0)
		advance(steadyAfter - 1)
		if o.health.now().Fault == nil {
			t.Error("the fault is over before the stream is steady")
		}
		advance(1)
		if f := o.health.now().Fault; f != nil {
			t.Errorf("the fault is %v, want none", f)
		}
		w.Stop()
		o.streams.Wait()
	})
}

// What a request returns because we ended it is neither shown nor passed on to be logged.
func TestTheEndOfTheContextIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{health: newHealth(Source{GVR: foos}, logr.Discard(), nil)}
		ctx, cancel := context.WithCancel(t.Context())
		inner := apiwatch.NewFake()
		w := o.forward(ctx, inner, false, 0)
		cancel()
		inner.Error(&forbidden.ErrStatus)
		inner.Error(&forbidden.ErrStatus)
		synctest.Wait()
		select {
		case e := <-w.ResultChan():
			t.Errorf("the stream passed on %v", e)
		default:
		}
		_, err := list(ctx, o, options, func(context.Context, listOptions) (*unstructured.UnstructuredList, error) { return nil, ctx.Err() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the list failed with %v", err)
		}
		if f := o.health.now().Fault; f != nil {
			t.Errorf("the state shows %v", f)
		}
		w.Stop()
		o.streams.Wait()
	})
}

func TestFaultsThatDifferInPortsAreAlike(t *testing.T) {
	lost := func(port int) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: errors.New("reset by peer")}
	}
	tests := map[string]struct {
		a, b error
		want bool
	}{
		"two ports":                   {&fault{doing: "listing", err: lost(1)}, &fault{doing: "listing", err: lost(2)}, true},
		"listing and watching":        {&fault{doing: "listing", err: lost(1)}, &fault{doing: "watching", err: lost(1)}, false},
		"not found and forbidden":     {&fault{err: notFound}, &fault{err: forbidden}, false},
		"two texts without a reason":  {&fault{err: errors.New("a")}, &fault{err: errors.New("b")}, false},
		"a fault and none":            {&fault{err: notFound}, nil, false},
		"none and none":               {nil, nil, true},
		"one kind behind two wrapped": {&fault{err: fmt.Errorf("a: %w", notFound)}, &fault{err: notFound}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := alike(tt.a, tt.b); got != tt.want {
				t.Errorf("alike is %t, want %t", got, tt.want)
			}
		})
	}
}

func TestNothingIsReportedAfterTheEnd(t *testing.T) {
	var notified changes
	h := newHealth(Source{GVR: foos}, logr.Discard(), notified.on)
	h.synced()
	h.notify() // as when two changes were reported as one
	h.end()
	h.listed(forbidden)
	if len(notified.states) != 1 {
		t.Errorf("notified of %q, want one line", notified.states)
	}
}
