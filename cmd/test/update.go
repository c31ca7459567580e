// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"slices"

	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// Update makes the cases expect what was found, as far as it can, writes what it has changed, and leaves the other failures
// in the reports.
func Update(w io.Writer, all []cases.Report) error {
	var changes []cases.Change
	left := 0
	for i, r := range slices.Backward(all) { // so that lines that are new move none that is still to come
		if len(r.Failures) == 0 || r.Case == "" {
			continue
		}
		more, failures, err := cases.Update(r.File, r.Failures)
		if err != nil {
			return err
		}
		changes = append(more, changes...)
		all[i].Failures = failures
		left += len(failures)
	}
	for _, c := range changes {
		if _, err := fmt.Fprintln(w, c); err != nil {
			return err
		}
	}
	if left == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s cannot be updated: an expression, a value with an anchor or several lines, or what every case checks\n", counted(left, "failure"))
	return err
}
