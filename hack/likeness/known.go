// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// known says which cases of a suite pass on a real server.
type known struct {
	// About says of which version that is, and when it was measured.
	About string
	// Reconciles has the answer for each case.
	Passes map[string]bool
}

// knownFile is the path of the file about a suite.
func (s Servers) knownFile(suite string) string {
	return filepath.Join(s.root, "hack/likeness/known", suite+".txt")
}

// readKnown reads what is known of a real server: a first line that says when it was measured, then a case in each line.
func (s Servers) readKnown(suite string) (known, error) {
	data, err := os.ReadFile(s.knownFile(suite))
	if err != nil {
		return known{}, fmt.Errorf("reading known cases: %w; -real measures them", err)
	}
	about, rest, _ := strings.Cut(string(data), "\n")
	k := known{About: strings.TrimPrefix(about, "# "), Passes: map[string]bool{}}
	for line := range strings.Lines(rest) {
		if fields := strings.Fields(line); len(fields) > 1 {
			k.Passes[fields[0]] = fields[1] == "passes"
		}
	}
	return k, nil
}

// writeKnown writes what is known of a real server. Cases that were not measured now stay as they were.
func (s Servers) writeKnown(suite string, k known) error {
	passes := map[string]bool{}
	if old, err := s.readKnown(suite); err == nil {
		passes = old.Passes
	}
	maps.Copy(passes, k.Passes)
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", k.About)
	for _, name := range slices.Sorted(maps.Keys(passes)) {
		word := "fails"
		if passes[name] {
			word = "passes"
		}
		fmt.Fprintln(&out, name, word)
	}
	if err := os.WriteFile(s.knownFile(suite), []byte(out.String()), 0o644); err != nil {
		return fmt.Errorf("writing known cases: %w", err)
	}
	return nil
}
