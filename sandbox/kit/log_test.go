// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// playedTest is a test within a test, of which it keeps what is printed.
type playedTest struct {
	testing.TB
	failed   bool
	printed  []string
	cleanups []func()
}

func (t *playedTest) Helper()                    {}
func (t *playedTest) Cleanup(f func())           { t.cleanups = append(t.cleanups, f) }
func (t *playedTest) Failed() bool               { return t.failed }
func (t *playedTest) Log(args ...any)            { t.printed = append(t.printed, fmt.Sprint(args...)) }
func (t *playedTest) Logf(text string, a ...any) { t.Log(fmt.Sprintf(text, a...)) }

// end runs the cleanups, and returns what the test has printed.
func (t *playedTest) end() string {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
	return strings.Join(t.printed, "\n")
}

// logged runs a test whose handler logs so many lines after an hour, and returns what it prints.
func logged(t *testing.T, lines int, failed bool) (out string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		played := &playedTest{TB: t, failed: failed}
		c := kit.New(played)
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		op := dsl.New("web")
		op.Resource(foos, func(foo *dsl.Resource) {
			foo.OnCreate("greet", func(_ context.Context, r *dsl.Request) error {
				for i := range lines {
					r.Log.Info("hello", "line", i)
				}
				return nil
			})
		})
		c.Start(op)
		c.Advance(time.Hour)
		c.Create(oneFoo)
		c.Settle()
		out = played.end()
	})
	return out
}

func TestATestThatPassesPrintsNoLog(t *testing.T) {
	if got := logged(t, 10, false); got != "" {
		t.Errorf("it printed %s", got)
	}
}

func TestATestThatFailsPrintsTheLog(t *testing.T) {
	got := logged(t, 10, true)
	for _, want := range []string{
		"the engine's log, with the time since the test began:\n0s web-0: ", // from the start
		"\n1h0m0s web-0: ", `"msg"="hello"`, `"line"=9`, // what handlers log
		`"msg"="operator stopped"`, // to the end
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "left out") {
		t.Errorf("all lines fit, and yet:\n%s", got)
	}
}

func TestOfALongLogTheLastLinesArePrinted(t *testing.T) {
	got := strings.Split(logged(t, 5000, true), "\n")
	if len(got) != 1002 || !strings.HasSuffix(got[1], " earlier lines are left out)") {
		t.Fatalf("%d lines, the second is %s", len(got), got[1])
	}
	at := func(text string) int {
		return slices.IndexFunc(got, func(line string) bool { return strings.Contains(line, text) })
	}
	if first, last := at(`"line"=4500`), at(`"line"=4999`); last-first != 499 || at(`"line"=3000`) >= 0 {
		t.Errorf("lines 4500 and 4999 stand at %d and %d, line 3000 at %d", first, last, at(`"line"=3000`))
	}
}
