// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard calls code of operator authors, so that a panic or runtime.Goexit in it ends that call alone.
package guard

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// ErrBroke is wrapped by the errors of calls that did not return.
var ErrBroke = errors.New("the code did not return")

// broke is the error of a call that did not return. The stack is that of a panic, nil for runtime.Goexit.
type broke struct {
	text  string
	stack []byte
}

// Error says how the call ended.
func (b *broke) Error() string { return b.text }

// Is reports whether the target is ErrBroke.
func (b *broke) Is(target error) bool { return target == ErrBroke }

// Call calls code in a goroutine of its own and waits for it: runtime.Goexit, as in t.FailNow, ends that goroutine and not
// the caller's. The error says that the code panicked or called runtime.Goexit, and is nil when it returned. Who names the
// code, as in "handler".
func Call(who string, code func()) error {
	c := call{code: code}
	c.done.Add(1)
	go c.run()
	c.done.Wait()
	if !c.ended {
		return Exited(who)
	}
	return c.err
}

// call is a call of code in a goroutine. It is one piece, for each pass makes some.
type call struct {
	code func()
	err  error
	// ended: the goroutine went on after the code. It does not after runtime.Goexit.
	ended bool
	done  sync.WaitGroup
}

func (c *call) run() {
	defer c.done.Done()
	c.err = Here(c.code)
	c.ended = true
}

// Each calls code with the numbers from zero to n-1, and ignores panics. It needs one goroutine for all of them, and another one
// after each runtime.Goexit.
func Each(n int, code func(i int)) {
	next := 0
	rest := func() {
		for next < n {
			next++
			_ = Here(func() { code(next - 1) })
		}
	}
	for next < n {
		_ = Call("", rest)
	}
}

// Here calls code in the caller's goroutine. A panic is an error; runtime.Goexit ends the goroutine.
func Here(code func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
	}()
	code()
	return nil
}

// Exited is the error of code that called runtime.Goexit.
func Exited(who string) error { return &broke{text: who + " called runtime.Goexit"} }

func panicked(value any) error {
	return &broke{text: fmt.Sprintf("panic: %v", value), stack: debug.Stack()}
}

// Stack returns the stack of the panic that an error is about, nil for all other errors.
func Stack(err error) []byte {
	if b, is := errors.AsType[*broke](err); is {
		return b.stack
	}
	return nil
}
