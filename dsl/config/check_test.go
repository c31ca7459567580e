// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// warn is want for warnings.
var warn = regexp.MustCompile(`# warn((?:\+-?\d+)?(?:@\d+)?: )`)

// TestWarningsWithoutACluster has configurations that can be loaded, so that an operator runs with them whatever
// cluster it meets. Faults and doubts in them are reported all the same, each with its place.
func TestWarningsWithoutACluster(t *testing.T) {
	files, err := filepath.Glob("testdata/check/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %d configurations (%v), want more", len(files), err)
	}
	var out strings.Builder
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			op, err := config.Parse(file, data, handlers.Standard())
			if err != nil {
				t.Fatalf("it cannot be loaded: %v", err)
			}
			faults, warnings, err := config.Check(op)
			if err != nil {
				t.Fatal(err)
			}
			doubts := warn.ReplaceAllString(want.ReplaceAllString(string(data), "# "), "# want$1")
			for _, fault := range compare(expectations(string(data)), faults) {
				t.Error(fault)
			}
			for _, fault := range compare(expectations(doubts), warnings) {
				t.Errorf("warnings: %s", fault)
			}
			fmt.Fprintf(&out, "%s\n", strings.TrimPrefix(file, "testdata/"))
			for _, fault := range faults {
				fmt.Fprintf(&out, "  %s\n", strings.TrimPrefix(fault.Error(), file+":"))
			}
			for _, warning := range warnings {
				fmt.Fprintf(&out, "  warning: %s\n", strings.TrimPrefix(warning.Error(), file+":"))
			}
		})
	}
	holdMessages(t, "testdata/messages/check.txt", out.String())
}
