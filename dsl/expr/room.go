// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Limits of what expressions give, in bytes as [Room] counts them.
const (
	// MostOfAnObject is what etcd takes in one request unless it is told otherwise (its
	// --max-request-bytes): no object is larger.
	MostOfAnObject = 3 << 19
	// MostRendered is the limit where a [Scope] has no Room: of an expression, or of a template with
	// all its expressions.
	MostRendered = 32 << 20
)

// ErrTooLarge is wrapped by the errors of evaluations that would give more than there is room for. They
// are permanent: only a change of what they look at helps.
var ErrTooLarge = errors.New("it is too large")

// Room bounds what expressions and templates give, while it is being made: a few characters of an
// expression can repeat an object a thousand times. Counted are the bytes of texts and keys, and two
// for each value, which is about the least that they take as JSON. One goroutine uses it at a time.
type Room struct{ limit, left int }

// NewRoom returns room for so many bytes.
func NewRoom(limit int) *Room { return &Room{limit, limit} }

// Used returns how many bytes were counted.
func (r *Room) Used() int { return r.limit - r.left }

// value counts a value, of which text is all that has a size.
func (r *Room) value(text string) error {
	if r.left -= len(text) + 2; r.left < 0 {
		limit := strings.TrimSuffix(fmt.Sprintf("%.1f", float64(r.limit)/(1<<20)), ".0")
		return dsl.Permanent(&causedError{fmt.Errorf("it gives more than %s MiB", limit), ErrTooLarge})
	}
	return nil
}
