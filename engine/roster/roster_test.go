// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/engine/feed"
)

// fake is a resource without feeds. Its one worker runs a handler that needs some time, and heeds its context or not.
type fake struct {
	name  string
	needs time.Duration
	deaf  bool
	terms int
}

func (f *fake) Name() string      { return f.name }
func (*fake) Feeds() []*feed.Feed { return nil }
func (f *fake) Busy() []string    { return []string{"handler of " + f.name} }
func (*fake) End()                {}
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

func (f *fake) Begin() (int, func(context.Context)) {
	f.terms++
	return 1, f.work
}

func TestWork(t *testing.T) {
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
				var r Roster[*fake]
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
				term, lose := context.WithCancel(context.WithoutCancel(ctx))
				defer lose()
				if test.loss {
					defer stop()
					stop = lose
				}
				var working []bool
				done := make(chan error)
				go func() {
					done <- r.Work(ctx, term, Term{Grace: grace, Working: func(on bool) { working = append(working, on) }, Log: logr.Discard()})
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
				if !slices.Equal(working, []bool{true, false}) || one.terms != 1 {
					t.Errorf("it was told to work %v, in %d terms", working, one.terms)
				}
				time.Sleep(2 * time.Hour) // for the one that hears nothing
			})
		})
	}
}

// TestStartAndStop holds that a resource takes part in a term that lasts, and that nothing of it is left.
func TestStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Roster[*fake]
		ctx, stop := context.WithCancel(t.Context())
		r.Run(ctx)
		done := make(chan error)
		go func() {
			done <- r.Work(ctx, context.WithoutCancel(ctx), Term{Working: func(bool) {}, Log: logr.Discard()})
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
