// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// UnreadError is the error of a read from a cache that is not complete. If a right is missing, it wraps the error that the API server
// would return, so that apierrors.IsForbidden is true.
type UnreadError struct {
	// Source names the resource.
	Source string
	// Phase and Reason are the source's, in a namespace or as a whole.
	Phase  Phase
	Reason string
	// answer is the error that the API server would return, or nil.
	answer error
}

// Error returns the error of the API server, or the resource and the reason.
func (e *UnreadError) Error() string {
	if e.answer != nil {
		return e.answer.Error()
	}
	return fmt.Sprintf("reading %s: it is %s: %s", e.Source, e.Phase, e.Reason)
}

// Unwrap returns the answer of the API server.
func (e *UnreadError) Unwrap() error { return e.answer }

// IsUnread reports whether an error comes from a forbidden or faulty source. Such a source logs its state itself.
func IsUnread(err error) bool {
	unread, is := errors.AsType[*UnreadError](err)
	return is && (unread.Phase == Forbidden || unread.Phase == Faulty)
}

// IsUnanswered reports whether an error says that the API server did not answer, a source included.
func IsUnanswered(err error) bool {
	unread, is := errors.AsType[*UnreadError](err)
	return is && unread.Phase == Faulty || transport.IsUnanswered(err)
}

// ListingInterval is the interval of checks whether a listing is complete.
const ListingInterval = time.Second
