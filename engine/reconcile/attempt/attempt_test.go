// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestHowAnAttemptComesOut holds what is made of the ways in which a handler ends.
func TestHowAnAttemptComesOut(t *testing.T) {
	refused := errors.New("connection refused")
	tests := map[string]struct {
		h       dsl.Handler
		f       dsl.Func
		says    string
		outcome ops.Outcome
		// void: what it wanted does not count; permanent: it is not tried again.
		void, permanent, waits bool
	}{
		"it returns nothing": {f: func(context.Context, *dsl.Request) error { return nil }, outcome: ops.Success},
		"it fails":           {f: func(context.Context, *dsl.Request) error { return refused }, says: "connection refused", outcome: ops.Retry},
		"it waits": {f: func(context.Context, *dsl.Request) error { return dsl.Waiting("for the Pods", time.Hour) },
			says: "for the Pods", outcome: ops.Waiting, waits: true},
		"it panics": {f: func(context.Context, *dsl.Request) error { panic("nil map") }, says: "panic: nil map", outcome: ops.Panic, void: true},
		"it heeds its timeout": {h: dsl.Handler{Timeout: time.Minute}, f: func(ctx context.Context, _ *dsl.Request) error {
			<-ctx.Done()
			return ctx.Err()
		}, says: "the timeout passed (1m0s)", outcome: ops.Timeout, void: true},
		"it does not, and returns nothing": {h: dsl.Handler{Timeout: time.Minute}, f: func(ctx context.Context, _ *dsl.Request) error {
			<-ctx.Done()
			return nil
		}, says: "the timeout passed (1m0s)", outcome: ops.Timeout, void: true},
		"all attempts together take too long": {h: dsl.Handler{Deadline: 2 * time.Hour}, f: func(ctx context.Context, _ *dsl.Request) error {
			<-ctx.Done()
			return ctx.Err()
		}, says: "the timeout passed (2h0m0s for all attempts)", outcome: ops.Timeout, void: true},
		"it wants something wrong": {f: func(_ context.Context, r *dsl.Request) error {
			r.Patch.Set("spec..size", 1)
			return nil
		}, says: "spec..size", outcome: ops.Retry, permanent: true},
		"it wants to change an object, and has none": {h: dsl.Handler{ResourceWide: true}, f: func(_ context.Context, r *dsl.Request) error {
			r.Patch.Set("spec.size", 1)
			return nil
		}, says: "but runs without one", outcome: ops.Retry, permanent: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				span := transport.NewSpan(func(context.Context) bool { return true })
				err := Run(t.Context(), &tt.h, tt.f, &dsl.Request{Subject: dsl.Subject{Log: logr.Discard()}, Patch: dsl.NewPatch()}, time.Now().Add(time.Hour), span)
				if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("it says %v, want %q", err, tt.says)
				}
				if got := Outcome(err, false, false); got != tt.outcome {
					t.Errorf("it counts as %s, want %s", got, tt.outcome)
				}
				if _, waits := Waits(err); Void(err) != tt.void || dsl.IsPermanent(err) != tt.permanent || waits != tt.waits {
					t.Errorf("it is void: %v, for good: %v, waits: %v; want %v, %v, %v", Void(err), dsl.IsPermanent(err), waits, tt.void, tt.permanent, tt.waits)
				}
				if !span.Over() {
					t.Error("the handler's context lives on")
				}
			})
		})
	}
}

// TestAFilterThatPanics holds that it is one that cannot be asked.
func TestAFilterThatPanics(t *testing.T) {
	holds, err := Ask(func(*dsl.Subject) (bool, error) { panic("nil map") }, &dsl.Subject{})
	if holds || !errors.Is(err, guard.ErrBroke) {
		t.Errorf("it holds: %v, with %v", holds, err)
	}
}

// TestTheEndOfATrouble holds that the log says that a failure is over when it has logged the failure, and how long it lasted.
func TestTheEndOfATrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		var all Troubles
		all.Failed("quiet", false)
		all.Failed("loud", true)
		time.Sleep(time.Minute)
		all.Failed("loud", false)
		all.LogRecovered(log, "quiet", "handler works again")
		all.LogRecovered(log, "loud", "handler works again")
		all.LogRecovered(log, "loud", "handler works again")
		if got, want := strings.Join(lines, "\n"), `"level"=0 "msg"="handler works again" "failed"=2 "lasted"="1m0s"`; got != want {
			t.Errorf("the log says\n%s\nwant\n%s", got, want)
		}
	})
}

// TestTheErrorsOfATimeThatIsOver holds that requests fail with an error that is the end of a context to those who ask,
// and says whose time is over.
func TestTheErrorsOfATimeThatIsOver(t *testing.T) {
	tests := map[string]struct {
		handler dsl.Handler
		end     time.Duration
		want    string
	}{
		"that of an attempt":   {dsl.Handler{Timeout: time.Second}, 0, "the timeout passed (1s)"},
		"that of all attempts": {dsl.Handler{Timeout: time.Hour, Deadline: time.Minute}, time.Second, "the timeout passed (1m0s for all attempts)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var end time.Time
				if test.end > 0 {
					end = time.Now().Add(test.end)
				}
				ctx, cancel := limited(t.Context(), &test.handler, end)
				defer cancel()
				<-ctx.Done()
				err := context.Cause(ctx)
				var slow interface{ Timeout() bool }
				if err.Error() != test.want || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errTimeout) || errors.Is(err, context.Canceled) || !errors.As(err, &slow) || !slow.Timeout() {
					t.Errorf("the cause is %v", err)
				}
			})
		})
	}
}

// TestHome holds in which namespace's end handlers of an object end: a Namespace ends with itself.
func TestHome(t *testing.T) {
	object := func(version, kind, namespace string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
		o.SetNamespace(namespace)
		o.SetName("shop")
		return o
	}
	for name, tt := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"an object in a namespace": {object("example.com/v1", "Foo", "a"), "a"},
		"a cluster-wide object":    {object("example.com/v1", "Foo", ""), ""},
		"a Namespace":              {object("v1", "Namespace", ""), "shop"},
		"another kind of the name": {object("example.com/v1", "Namespace", ""), ""},
		"no object":                {nil, ""},
	} {
		if got := Home(tt.object); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
