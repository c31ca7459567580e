// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard calls code of operator authors, so that a panic or runtime.Goexit in it ends only that call.
package guard

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// ErrBroke is wrapped by the errors of calls that did not return.
var ErrBroke = errors.New("the code did not return")

// broke is the error of a call that did not return. It has the stack of a panic; for runtime.Goexit the stack is
// nil.
type broke struct {
	text  string
	stack []byte
}

// Error says how the call ended.
func (b *broke) Error() string { return b.text }

// Is reports whether the target is ErrBroke.
func (b *broke) Is(target error) bool { return target == ErrBroke }

// Call calls code in its own goroutine and waits for it, so that runtime.Goexit, as in t.FailNow, ends that
// goroutine and not the caller's. It returns an error if the code panicked or called runtime.Goexit. Who names the
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

// call is a call of code in a goroutine. It is a single allocation, because each reconcile makes several calls.
type call struct {
	code func()
	err  error
	// ended: the goroutine continued after the code, which it does not after runtime.Goexit.
	ended bool
	done  sync.WaitGroup
}

func (c *call) run() {
	defer c.done.Done()
	_ = reserve(0)
	c.err = Here(c.code)
	c.ended = true
}

// room is the stack in bytes that a call has at least from its beginning. Handlers and expressions take as much, and a new goroutine has
// 2 KB: its stack would grow in steps, and each step copies all frames.
const room = 8 << 10

// reserve makes the stack grow in one step, while there is nearly nothing on it: a function has the room for its variables from its
// beginning. It is called with zero, so that it does not clear them.
//
//go:noinline
func reserve(at int) byte {
	if at == 0 {
		return 0
	}
	var frame [room]byte
	return frame[at]
}

// Each calls code with the numbers from zero to n-1, and returns the errors by number; nil without any. A panic and
// runtime.Goexit are errors, too. It uses one goroutine for all calls, and a new one after each runtime.Goexit. Who
// names the code, as in [Call].
func Each(who string, n int, code func(i int) error) (errs map[int]error) {
	note := func(i int, err error) {
		if err == nil {
			return
		}
		if errs == nil {
			errs = map[int]error{}
		}
		errs[i] = err
	}
	next := 0
	rest := func() {
		for next < n {
			next++
			if broke := Here(func() { note(next-1, code(next-1)) }); broke != nil {
				note(next-1, broke)
			}
		}
	}
	for next < n {
		if broke := Call(who, rest); broke != nil {
			note(next-1, broke)
		}
	}
	return errs
}

// Here calls code in the caller's goroutine. It returns a panic as an error; runtime.Goexit ends the goroutine.
func Here(code func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
	}()
	code()
	return nil
}

// Exited returns the error for code that called runtime.Goexit.
func Exited(who string) error { return &broke{text: who + " called runtime.Goexit"} }

func panicked(value any) error {
	return &broke{text: fmt.Sprintf("panic: %v", value), stack: ofCode(debug.Stack())}
}

// ofCode returns the lines of a stack from the code that panicked up to [Here]. Those before are about the panic itself, and those after
// about what called the code.
func ofCode(stack []byte) []byte {
	if _, after, found := bytes.Cut(stack, []byte("\npanic(")); found {
		for range 2 { // the rest of the call, and its place
			_, after, _ = bytes.Cut(after, []byte("\n"))
		}
		stack = after
	}
	if before, _, found := bytes.Cut(stack, []byte("\ngithub.com/handwerk-dev/handwerk/dsl/guard.Here(")); found {
		stack = before
	}
	return stack
}

// Stack returns the stack of the panic in an error, or nil. It begins with the code that panicked.
func Stack(err error) []byte {
	if b, is := errors.AsType[*broke](err); is {
		return b.stack
	}
	return nil
}
