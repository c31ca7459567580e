// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Temporary marks err as passing: the handler runs again after the given time instead of its own
// back-off. The attempt counts. A time of zero or less means at once; after ten times in a
// row, it means a second. Temporary(nil, …) is nil.
func Temporary(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &temporaryError{err, max(after, 0)}
}

// Permanent marks err as final: the handler is not run again until something that it looks at
// changes. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Waiting says that the handler is not done and has not failed: it waits for something that others
// do, and runs again when a child or a related object changes, at the latest after the time given,
// or a minute when that is zero. It is no attempt. Reason says for people what it waits for.
func Waiting(reason string, most time.Duration) error {
	return &waitingError{reason: reason, most: cmp.Or(max(most, 0), time.Minute)}
}

// IsWaiting reports whether err, or an error it wraps, came from [Waiting], and the time it gives.
func IsWaiting(err error) (most time.Duration, ok bool) {
	if w, found := errors.AsType[*waitingError](err); found {
		return w.most, true
	}
	return 0, false
}

// IsTemporary reports whether err, or an error it wraps, came from [Temporary], and the time it
// asks for.
func IsTemporary(err error) (after time.Duration, ok bool) {
	if t, found := errors.AsType[*temporaryError](err); found {
		return t.after, true
	}
	return 0, false
}

// IsPermanent reports whether err, or an error it wraps, came from [Permanent].
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// ErrorPolicy says what becomes of an error of a handler, a panic and a passed timeout among them. What [Temporary],
// [Permanent] or [Waiting] says itself counts more, and what the API server refuses of a handler's changes is no error of
// the handler's.
type ErrorPolicy string

// The policies.
const (
	// ErrorsRetry has the handler run again after its back-off, as often as [Retries] says.
	ErrorsRetry ErrorPolicy = "retry"
	// ErrorsFail has it fail for good.
	ErrorsFail ErrorPolicy = "fail"
	// ErrorsIgnore tells the error in the log, and counts as success: the handler does not run again for that, and
	// a deletion does not wait for it. What it has changed before is sent, as with any error; of steps, those behind the
	// one that failed are left out.
	ErrorsIgnore ErrorPolicy = "ignore"
)

// Choices returns the policies, for those who read one.
func (ErrorPolicy) Choices() (what string, words []string) {
	return "policy", []string{string(ErrorsRetry), string(ErrorsFail), string(ErrorsIgnore)}
}

type temporaryError struct {
	error
	after time.Duration
}

func (e *temporaryError) Unwrap() error { return e.error }

type waitingError struct {
	reason string
	most   time.Duration
}

func (e *waitingError) Error() string { return "waiting for " + e.reason }

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// ErrNotOwned is wrapped by the error of [Children.Apply] when an object of that name exists
// that this object does not own. The object found is left untouched.
var ErrNotOwned = errors.New("it exists and is not owned by this object")

// NotOwnedError names the object that [Children.Apply] refused to touch.
type NotOwnedError struct {
	// Resource is the kind of the object found, as in "Deployment".
	Resource string
	// Namespace and Name say which one.
	Namespace, Name string
	// Owner says who owns it, as in "Foo other"; empty when nobody does.
	Owner string
	// Advice says for people what can be done about it where that depends on the object; empty for
	// the usual.
	Advice string
}

// Error names the object and its owner, and says what can be done.
func (e *NotOwnedError) Error() string {
	whose, advice := "", "rename the child, delete the object, or say adopt: ifUnowned"
	if e.Owner != "" {
		whose, advice = " (its owner is "+e.Owner+")", "rename the child, or delete the object"
	}
	if e.Advice != "" {
		advice = e.Advice
	}
	return fmt.Sprintf("applying %s %s: %v%s; %s", e.Resource, qualified(e.Namespace, e.Name), ErrNotOwned, whose, advice)
}

// Unwrap returns ErrNotOwned, so that errors.Is finds it.
func (e *NotOwnedError) Unwrap() error { return ErrNotOwned }

// CollisionError is the error of [Children.Apply] when another handler of the same object keeps that child
// otherwise. The child is left as that one wants it.
type CollisionError struct {
	// Kind, Namespace and Name say which child.
	Kind, Namespace, Name string
	// Handler is the id of the handler that has it.
	Handler string
}

// Error names the child and the handler that has it.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("applying %s %s: handler %s keeps it, and otherwise; give each a child of its own", e.Kind, qualified(e.Namespace, e.Name), e.Handler)
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
