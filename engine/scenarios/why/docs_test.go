// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachRowOfTheDocsIsTested holds that each line that docs/troubleshooting.md shows of an answer is wanted by a test.
func TestEachRowOfTheDocsIsTested(t *testing.T) {
	page, err := os.ReadFile("../../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range append(files, "../../../cmd/why_test.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.WriteString(strings.ReplaceAll(string(text), `\"`, `"`))
	}
	_, table, _ := strings.Cut(string(page), "### What operator why says\n")
	table, _, _ = strings.Cut(table, "\n### ")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.Contains(cells[1], "---") || strings.Contains(cells[2], "a line of the answer") {
			continue
		}
		rows++
		if said := strings.TrimSpace(cells[2]); !strings.Contains(tests.String(), said) {
			t.Errorf("no test wants %q", said)
		}
	}
	if rows < 25 {
		t.Errorf("the table has %d rows, want 25", rows)
	}
}
