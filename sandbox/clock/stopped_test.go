// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
)

// midnight is when the clocks of the tests stop.
func midnight() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestFunctionsRunOneByOneInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	c := clock.NewStopped(midnight())
	var got []string
	plan := func(name string, d time.Duration) clock.Timer {
		return c.AfterFunc(d, func() { got = append(got, fmt.Sprint(c.Now().Sub(midnight()), " ", name)) })
	}
	plan("b", time.Minute)
	plan("a", time.Second)
	plan("c", time.Minute)
	stopped := plan("stopped", 2*time.Second)
	c.AfterFunc(30*time.Second, func() { plan("planned by another", time.Second) })
	plan("after the limit", time.Hour+1)
	if !stopped.Stop() || stopped.Stop() {
		t.Error("a timer is not stopped once")
	}
	steps := 0
	for c.Next(midnight().Add(time.Hour)) {
		steps++
	}
	want := []string{"1s a", "31s planned by another", "1m0s b", "1m0s c"}
	if diff := cmp.Diff(want, got); diff != "" || steps != 5 {
		t.Errorf("in %d steps (-want +got):\n%s", steps, diff)
	}
	if c.Next(midnight()); !c.Now().Equal(midnight().Add(time.Hour)) {
		t.Errorf("the clock stands at %s", c.Now())
	}
}

func TestAFunctionThatIsDueNowRunsAtOnce(t *testing.T) {
	t.Parallel()
	c := clock.NewStopped(midnight())
	proceed, ran := make(chan struct{}), false
	c.AfterFunc(0, func() {
		<-proceed
		c.AfterFunc(-1, func() { ran = true })
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ended); err == nil {
		t.Error("nothing runs, it says")
	}
	close(proceed)
	if err := c.Wait(t.Context()); err != nil || !ran {
		t.Errorf("%v, the function that the first one began has run: %t", err, ran)
	}
}
