// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

var errDown = errors.New("the database is down")

// play runs a test in virtual time with the activities of an operator whose grace period is 20 s.
func play(t *testing.T, declare func(*dsl.Operator), do func(t *testing.T, o *Hooks)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		op := dsl.New("op")
		declare(op)
		do(t, New(Settings{
			Operator: op, Log: logr.Discard(), Memo: &dsl.Memo{}, Grace: 20 * time.Second,
			Held: func(context.Context) bool { return true }, Clients: clients{},
		}))
	})
}

// clients are none.
type clients struct{}

func (clients) Unnoted(*transport.Span) dsl.Client { return nil }

// notes is a list that several goroutines write to.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
}

func (n *notes) then(text string, err error) dsl.Func {
	return func(context.Context, *dsl.Request) error { n.add(text); return err }
}

func (n *notes) want(t *testing.T, want ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if diff := cmp.Diff(want, n.list); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	n.list = nil
}

// failsTimes fails so many times before it succeeds.
func failsTimes(n int, err error) dsl.Func {
	return func(context.Context, *dsl.Request) error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

// TestHowStartupsEnd holds that the process begins when all have succeeded, and ends when one has failed for good.
func TestHowStartupsEnd(t *testing.T) {
	tests := map[string]struct {
		declare func(op *dsl.Operator, n *notes)
		says    string
		took    time.Duration
		want    []string
	}{
		"there are none": {func(*dsl.Operator, *notes) {}, "", 0, nil},
		"one after the other, with what one leaves for the next": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", func(_ context.Context, r *dsl.Request) error {
				r.OperatorMemo.Set("x", "of one")
				n.add("one")
				return nil
			})
			op.OnStartup("two", func(_ context.Context, r *dsl.Request) error {
				x, _ := r.Memo.Get("x")
				n.add("two " + x.(string))
				return nil
			})
		}, "", 0, []string{"one", "two of one"}},
		"one that fails is tried again, and others wait for it": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", failsTimes(2, dsl.Temporary(errDown, 10*time.Second)))
			op.OnStartup("two", n.then("two", nil))
		}, "", 20 * time.Second, []string{"two"}},
		"one that waits is tried again": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", failsTimes(1, dsl.Waiting("the database", 30*time.Second)))
		}, "", 30 * time.Second, nil},
		"a permanent error is the end": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", n.then("one", dsl.Permanent(errDown)))
			op.OnStartup("two", n.then("two", nil))
		}, "running startup one: the database is down", 0, []string{"one"}},
		"so are retries that are used up": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", n.then("one", dsl.Temporary(errDown, time.Second)), dsl.Retries(1))
		}, "running startup one: the database is down", time.Second, []string{"one", "one"}},
		"so is a deadline": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", n.then("one", dsl.Temporary(errDown, 40*time.Second)), dsl.Deadline(time.Minute))
		}, "running startup one: the database is down", 40 * time.Second, []string{"one", "one"}},
		"an error that is ignored is none": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", n.then("one", errDown), dsl.Errors(dsl.ErrorsIgnore))
		}, "", 0, []string{"one"}},
		"a panic is an error": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", func(context.Context, *dsl.Request) error { panic("nil map") }, dsl.Retries(0))
		}, "running startup one: panic: nil map", 0, nil},
		"there is no object to change": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", func(_ context.Context, r *dsl.Request) error { r.Patch.Set("spec.size", 1); return nil })
		}, "running startup one: it changes its object, but runs without one", 0, nil},
		"nor children, nor related objects": {func(op *dsl.Operator, n *notes) {
			op.OnStartup("one", func(_ context.Context, r *dsl.Request) error {
				_, err := r.Children.Get("pods.v1", "x")
				_, related := r.Related.Get("x")
				return errors.Join(err, related)
			})
		}, "running startup one: asking for children: it runs for the operator as a whole", 0, nil},
	}
	for name, tt := range tests {
		n := &notes{}
		t.Run(name, func(t *testing.T) {
			play(t, func(op *dsl.Operator) { tt.declare(op, n) }, func(t *testing.T, o *Hooks) {
				begun := time.Now()
				err := o.Start(t.Context())
				if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("it says %v, want %q", err, tt.says)
				}
				if took := time.Since(begun); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				n.want(t, tt.want...)
			})
		})
	}
}

// TestAStopDuringStartup holds that it ends the wait, and that there is nothing to clean up.
func TestAStopDuringStartup(t *testing.T) {
	n := &notes{}
	play(t, func(op *dsl.Operator) {
		op.OnStartup("one", n.then("one", dsl.Temporary(errDown, time.Hour)))
		op.OnCleanup("bye", n.then("bye", nil))
	}, func(t *testing.T, o *Hooks) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := o.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
		o.Clean(t.Context())
		n.want(t, "one")
	})
}

// TestWhenCleanupsRun holds that they do once, after startups, and have what is left of the grace period.
func TestWhenCleanupsRun(t *testing.T) {
	n := &notes{}
	until := func(ctx context.Context, _ *dsl.Request) error {
		end, _ := ctx.Deadline()
		n.add(time.Until(end).String())
		return nil
	}
	for name, tt := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"when handlers were quick": {5 * time.Second, []string{"5s", "bye"}},
		"when they were not":       {time.Minute, []string{"666.666666ms", "bye"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(op *dsl.Operator) {
				op.OnCleanup("one", until)
				op.OnCleanup("again", func(context.Context, *dsl.Request) error { return errDown }) // until its time is over
				op.OnCleanup("two", n.then("bye", nil))
			}, func(t *testing.T, o *Hooks) {
				ctx, cancel := context.WithCancel(t.Context())
				if err := o.Start(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
				time.Sleep(tt.after)
				o.Clean(t.Context())
				o.Clean(t.Context())
				n.want(t, tt.want...)
			})
		})
	}
}

// TestCodeThatDoesNotHeedItsContext holds that the process ends all the same.
func TestCodeThatDoesNotHeedItsContext(t *testing.T) {
	play(t, func(op *dsl.Operator) {
		op.OnCleanup("deaf", func(context.Context, *dsl.Request) error { time.Sleep(time.Hour); return nil })
	}, func(t *testing.T, o *Hooks) {
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		o.Clean(t.Context())
		if took := time.Since(begun); took != 25*time.Second {
			t.Errorf("it took %v, want the grace period and 5 s", took)
		}
		time.Sleep(time.Hour) // for nothing may be left behind in a test
	})
}

// TestCodeThatEndsItsGoroutine holds that its waiter gets an error, and that it is asked again.
func TestCodeThatEndsItsGoroutine(t *testing.T) {
	var probed, begun int
	exits := func(n *int) dsl.Func {
		return func(context.Context, *dsl.Request) error {
			if *n++; *n == 1 {
				runtime.Goexit()
			}
			return nil
		}
	}
	play(t, func(op *dsl.Operator) {
		op.OnStartup("first", exits(&begun), dsl.WithBackoff(time.Minute, time.Minute))
		op.OnReady("ready", exits(&probed))
	}, func(t *testing.T, o *Hooks) {
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		want := []ops.Check{{Name: "probe/ready", State: ops.Fail, Message: "handler called runtime.Goexit"}}
		if diff := cmp.Diff(want, o.Checks(dsl.ReadyProbe)); diff != "" || time.Since(before) > 0 {
			t.Errorf("after %v (-want +got):\n%s", time.Since(before), diff)
		}
		if got := o.Checks(dsl.ReadyProbe); got[0].State == ops.Fail || probed != 2 || begun != 2 {
			t.Errorf("asked again it says %v; it was called %d times, the startup %d times", got, probed, begun)
		}
	})
}

// TestProbes holds what is said to those who ask, and that no probe is asked more than once at a time.
func TestProbes(t *testing.T) {
	var calls atomic.Int32
	slow := func(ctx context.Context, _ *dsl.Request) error {
		calls.Add(1)
		time.Sleep(3 * time.Second)
		return nil
	}
	n := &notes{}
	play(t, func(op *dsl.Operator) {
		op.OnStartup("wait", failsTimes(1, dsl.Temporary(errDown, time.Minute)))
		op.OnReady("good", n.then("good", nil))
		op.OnReady("counts", func(_ context.Context, r *dsl.Request) error { r.Result(map[string]any{"sessions": 12}); return nil })
		op.OnReady("counts-down", func(_ context.Context, r *dsl.Request) error { r.Result(0); return errDown })
		op.OnReady("bad", n.then("bad", errDown))
		op.OnReady("torn", func(context.Context, *dsl.Request) error { panic("nil map") })
		op.OnHealth("slow", slow)
	}, func(t *testing.T, o *Hooks) {
		go func() {
			if err := o.Start(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if diff := cmp.Diff([]ops.Check{{Name: "startup", State: ops.Fail, Message: "wait: the database is down"}}, o.Checks(dsl.ReadyProbe)); diff != "" {
			t.Errorf("during a startup (-want +got):\n%s", diff)
		}
		if got := o.Checks(dsl.HealthProbe); len(got) > 0 {
			t.Errorf("during a startup its health is %v", got)
		}
		n.want(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []ops.Check{
			{Name: "probe/good"}, {Name: "probe/counts", Message: `{"sessions":12}`}, {Name: "probe/counts-down", State: ops.Fail, Message: "the database is down"}, {Name: "probe/bad", State: ops.Fail, Message: "the database is down"}, {Name: "probe/torn", State: ops.Fail, Message: "panic: nil map"},
		}
		if diff := cmp.Diff(want, o.Checks(dsl.ReadyProbe)); diff != "" {
			t.Errorf("readiness (-want +got):\n%s", diff)
		}
		var all sync.WaitGroup
		for _, after := range []time.Duration{0, 0, time.Second} {
			all.Go(func() {
				time.Sleep(after)
				begun := time.Now()
				got := o.Checks(dsl.HealthProbe)
				if want := "no answer for " + (after + max(0, dsl.DefaultProbeTimeout-after)).String(); got[0].State != ops.Fail || got[0].Message != want {
					t.Errorf("after %v it says %v, want %q", after, got[0], want)
				}
				if took := time.Since(begun); took != max(0, dsl.DefaultProbeTimeout-after) {
					t.Errorf("after %v it took %v", after, took)
				}
			})
		}
		all.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("the probe was called %d times", n)
		}
		time.Sleep(3 * time.Second)
	})
}

// TestAnActivityThatFailsIsLoggedWithItsEnd holds that a text is a line ever more seldom, and that the end has one.
func TestAnActivityThatFailsIsLoggedWithItsEnd(t *testing.T) {
	const again = `"level"=0 "msg"="activity will be tried again" "activity"="startup" "handler"="one" "handwerk.warning"=%v "error"="%s" "failed"=%d "retryAfter"="1s"`
	over := func(failed int) string {
		return fmt.Sprintf(`"level"=0 "msg"="activity works again" "activity"="startup" "handler"="one" "failed"=%d`, failed)
	}
	down := func(failed int) string { return fmt.Sprintf(again, true, errDown, failed) }
	inTurn := func(all ...error) dsl.Func {
		return func(context.Context, *dsl.Request) error {
			var next error
			if len(all) > 0 {
				next, all = all[0], all[1:]
			}
			return next
		}
	}
	fails, other := dsl.Temporary(errDown, time.Second), dsl.Temporary(errors.New("no route"), time.Second)
	for name, tt := range map[string]struct {
		code dsl.Func
		want []string
	}{
		"one that succeeds has none":       {inTurn(), nil},
		"one failure":                      {inTurn(fails), []string{down(1), over(1)}},
		"many with one text":               {failsTimes(9, fails), []string{down(1), down(2), down(4), down(8), over(9)}},
		"another text":                     {inTurn(fails, fails, fails, other), []string{down(1), down(2), fmt.Sprintf(again, true, "no route", 4), over(4)}},
		"a wait, which is no fault":        {inTurn(dsl.Waiting("the moon", time.Second)), []string{fmt.Sprintf(again, false, "waiting for the moon", 1), over(1)}},
		"one that is ignored has its line": {nil, []string{`"level"=0 "msg"="activity failed, which counts as success" "activity"="startup" "handler"="one" "handwerk.warning"=true "error"="the database is down"`}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(op *dsl.Operator) {
				if tt.code == nil {
					op.OnStartup("one", inTurn(errDown), dsl.Errors(dsl.ErrorsIgnore))
					return
				}
				op.OnStartup("one", tt.code)
			}, func(t *testing.T, o *Hooks) {
				var lines []string
				o.set.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
				if err := o.Start(t.Context()); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, lines); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}
