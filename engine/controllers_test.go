// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
)

// fake is a resource without feeds. Its one worker runs a handler that needs some time, and heeds its
// context or not.
type fake struct {
	name  string
	needs time.Duration
	deaf  bool
	terms int
}

func (f *fake) Sources() []*source.Source { return nil }
func (f *fake) Busy() []string            { return []string{"handler of " + f.name} }
func (f *fake) End()                      {}

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
				r.Add(one)
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
