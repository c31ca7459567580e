// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"
	"time"
)

// TestACaseThatEndsWithoutAWordHasFailed has a process that reports the beginning of a case, and its own end.
func TestACaseThatEndsWithoutAWordHasFailed(t *testing.T) {
	const says = `echo '{"File":"a_test.yaml","Case":"one","Line":7,"Begins":true}'; echo '{"Done":true}'; echo 'what is known' >&2`
	all, _, err := Run(t.Context(), Settings{Files: []string{"a_test.yaml"}, Timeout: time.Minute, Program: "/bin/sh", Args: []string{"-c", says}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Begins || len(all[0].Failures) != 1 {
		t.Fatalf("the reports are %+v", all)
	}
	if got := all[0].Failures[0]; got.Line != 7 || !strings.Contains(got.Message, "nothing was said of its end") || got.Detail != "what is known" {
		t.Errorf("the failure is %+v", got)
	}
}
