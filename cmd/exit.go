// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// The exit codes; the package comment says what they mean.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitChanges     = 2
	exitUnwell      = 3
	exitInterrupted = 130
)

// usageError is an error of usage that shows only while the command runs.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// errPrinted is returned by a command that has printed its error itself.
var errPrinted = errors.New("printed")

// errUnwell is returned by a command that has found and printed that an operator is not well.
var errUnwell = errors.New("not well")

// report prints an error and returns the exit code.
func report(w tame, err error) int {
	if usage, ok := errors.AsType[*usageError](err); ok {
		return reportUsage(w, usage.err, usage.command)
	}
	switch {
	case errors.Is(err, errPrinted):
		return exitFailed
	case errors.Is(err, errUnwell):
		return exitUnwell
	case errors.Is(err, errChanges):
		return exitChanges
	}
	if list, ok := errors.AsType[source.Faults](err); ok {
		for _, f := range list.Shown() {
			tellFault(w, "", noColor, f)
		}
		err = fmt.Errorf("the configuration has %s", count(len(list), "fault"))
	}
	for _, f := range faults(err).Shown() {
		fmt.Fprint(w, w.fit(w.paint(red, "error:")+" "+f.Message+"\n"))
	}
	return exitFailed
}

// reportUsage prints an error of usage, and where to find help.
func reportUsage(w tame, err error, command string) int {
	fmt.Fprintf(w, "%s %v\nsee '%s --help'\n", w.paint(red, "error:"), err, command)
	return exitUsage
}

// count writes a number with its noun, as in "1 resource" and "2 resources".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
