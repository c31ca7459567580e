// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package reported tests situations that users of operators have reported. Each folder of testdata has an operator and
// its cases.
package reported

import (
	"path/filepath"
	"testing"

	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

func TestReportedSituations(t *testing.T) {
	folders, err := filepath.Glob("testdata/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("finding situations: found %d (%v)", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { cases.Run(t, folder, handlers.Standard()) })
	}
}
