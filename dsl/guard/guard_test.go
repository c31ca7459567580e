// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestCall holds how a call of code ends, and that it costs little: each reconcile makes some.
func TestCall(t *testing.T) {
	for name, tt := range map[string]struct {
		code  func()
		want  string
		stack bool
	}{
		"code that returns":               {func() {}, "", false},
		"code that panics":                {func() { panic("no") }, "panic: no", true},
		"code that calls runtime.Goexit":  {runtime.Goexit, "handler called runtime.Goexit", false},
		"code that panics with an error":  {func() { panic(errors.New("no")) }, "panic: no", true},
		"code that panics on its way out": {func() { defer panic("no"); runtime.Goexit() }, "handler called runtime.Goexit", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			err := Call("handler", tt.code)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || errors.Is(err, ErrBroke) != (tt.want != "") || (Stack(err) != nil) != tt.stack {
				t.Errorf("it ends with %q, want %q; stack %s", got, tt.want, Stack(err))
			}
		})
	}
	if n := testing.AllocsPerRun(100, func() { _ = Call("handler", func() {}) }); n > 2 {
		t.Errorf("a call costs %v allocations, want 2", n)
	}
}

// TestEach holds that a call which breaks off keeps none of the others from running, and has its error.
func TestEach(t *testing.T) {
	var done []int
	errs := Each("code", 7, func(i int) error {
		switch i {
		case 0, 4, 6:
			runtime.Goexit()
		case 2:
			panic("no")
		case 5:
			return errors.New("failed")
		}
		done = append(done, i)
		return nil
	})
	if want := []int{1, 3}; !slices.Equal(done, want) {
		t.Errorf("done are %v, want %v", done, want)
	}
	exited := "code called runtime.Goexit"
	if got, want := fmt.Sprint(errs), fmt.Sprint(map[int]string{0: exited, 2: "panic: no", 4: exited, 5: "failed", 6: exited}); got != want {
		t.Errorf("the errors are %s, want %s", got, want)
	}
	Each("code", 0, func(int) error { return errors.New("there is nothing to do") })
	if n := testing.AllocsPerRun(100, func() { Each("code", 1000, func(int) error { return nil }) }); n > 6 {
		t.Errorf("a thousand calls cost %v allocations, want 6", n)
	}
}

// BenchmarkCallOfDeepCode calls code that needs some 6 KB of stack, as an expression does.
func BenchmarkCallOfDeepCode(b *testing.B) {
	sum := 0
	for b.Loop() {
		_ = Call("handler", func() { sum += deep(60, &sum) })
	}
}

//go:noinline
func deep(n int, at *int) int {
	var own [64]byte
	if n == 0 {
		return *at
	}
	own[n%len(own)] = byte(n)
	x := n
	return deep(n-1, &x) + int(own[n/2])
}

func TestTheStackOfAPanicIsThatOfItsCode(t *testing.T) {
	stack := string(Stack(Here(broken)))
	if lines := strings.Split(stack, "\n"); len(lines) != 2 || !strings.Contains(lines[0], "guard.broken(") || !strings.Contains(lines[1], "guard_test.go:") {
		t.Errorf("the stack is\n%s", stack)
	}
}

//go:noinline
func broken() { panic("broken") }
