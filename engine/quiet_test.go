// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestQuiet(t *testing.T) {
	var lines []string
	sink := funcr.New(func(name, line string) { lines = append(lines, name+" "+line) }, funcr.Options{Verbosity: 1})
	log := logr.FromContextOrDiscard(withQuiet(t.Context(), sink)).WithName("client").WithValues("a", "b")
	cancelled := fmt.Errorf("reading: %w", context.Canceled)
	log.Error(errors.New("broken"), "one")
	log.Error(cancelled, "two", "c", "d")
	log.Error(fmt.Errorf("reading: %w", bodyTimeout{}), "late")
	log.Info("three")
	want := []string{
		`client "msg"="one" "error"="broken" "a"="b"`,
		`client "level"=1 "msg"="two" "a"="b" "c"="d" "reason"="reading: context canceled"`,
		`client "level"=1 "msg"="late" "a"="b" "reason"="reading: while reading body"`,
		`client "level"=0 "msg"="three" "a"="b"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}

	lines = nil
	few := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	logr.FromContextOrDiscard(withQuiet(t.Context(), few)).Error(cancelled, "two")
	if len(lines) != 0 {
		t.Errorf("a cancellation was logged where nobody looks closely: %q", lines)
	}
	logr.FromContextOrDiscard(withQuiet(t.Context(), logr.Discard())).Error(cancelled, "nobody listens")
}

// bodyTimeout is what the HTTP client says when its time is over while a body is read.
type bodyTimeout struct{}

func (bodyTimeout) Error() string   { return "while reading body" }
func (bodyTimeout) Timeout() bool   { return true }
func (bodyTimeout) Temporary() bool { return true }
