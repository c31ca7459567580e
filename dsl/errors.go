// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Temporary marks err as temporary: the handler runs again after the given time instead of its own back-off. The
// attempt counts. A time of zero or less means at once; after ten times in a row, it means a second. Temporary(nil,
// …) is nil.
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

// Waiting says that the handler is not done and has not failed: it waits for other objects. It runs again when a
// child or a related object changes, and at the latest after the time given, or after a minute when that is zero.
// The run does not count as an attempt. Reason says for people what the handler waits for.
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

// ErrorPolicy says what an error of a handler leads to; panics and timeouts are errors, too. [Temporary],
// [Permanent] and [Waiting] take precedence. It does not apply when the API server refuses a handler's changes.
type ErrorPolicy string

// The policies.
const (
	// ErrorsRetry runs the handler again after its back-off, as often as [Retries] says.
	ErrorsRetry ErrorPolicy = "retry"
	// ErrorsFail makes the handler fail for good.
	ErrorsFail ErrorPolicy = "fail"
	// ErrorsIgnore logs the error and counts it as success: the handler does not run again for it, and a deletion
	// does not wait. Changes that the handler made before the error are sent, as with any error. In [Steps], the
	// steps after the failed one are skipped.
	ErrorsIgnore ErrorPolicy = "ignore"
)

// Choices returns the policies for errors.
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

// ErrNotOwned is wrapped by the error of [Children.Apply] for an existing object of that name that this object does
// not own. Apply leaves such an object alone.
var ErrNotOwned = errors.New("it exists and is not owned by this object")

// NotOwnedError names the object that [Children.Apply] refused to touch.
type NotOwnedError struct {
	// Resource is the kind of the existing object, as in "Deployment".
	Resource string
	// Namespace and Name identify it.
	Namespace, Name string
	// Owner names its owner, as in "Foo other"; empty when it has no owner.
	Owner string
	// Advice says for people how to solve this, where that depends on the object; empty for the usual advice.
	Advice string
}

// Error names the object and its owner, and says how to solve this.
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

// ClusterScopedError is the error of [Children.Apply] about a child that has no namespace. A caller that knows the kind
// alone would take the child for one in the owner's namespace.
type ClusterScopedError struct{ Err error }

// Error is the text of the error within.
func (e *ClusterScopedError) Error() string { return e.Err.Error() }

// Unwrap returns the error within.
func (e *ClusterScopedError) Unwrap() error { return e.Err }

// CollisionError is the error of [Children.Apply] when another handler of the same object applies the child
// differently. The child stays as the other handler wants it.
type CollisionError struct {
	// Kind, Namespace and Name identify the child.
	Kind, Namespace, Name string
	// Handler is the id of the other handler.
	Handler string
}

// Error names the child and the other handler.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("applying %s %s: handler %s keeps it, and otherwise; give each a child of its own", e.Kind, qualified(e.Namespace, e.Name), e.Handler)
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
