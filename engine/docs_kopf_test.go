// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachRowForKopfHasTests checks that testdata/from-kopf.txt names tests for each row of docs/from-kopf.md, and that these
// tests exist.
func TestEachRowForKopfHasTests(t *testing.T) {
	const listed = "testdata/from-kopf.txt"
	rows := tableRows(readPage(t, "../docs/from-kopf.md"))
	if len(rows) < 200 {
		t.Errorf("docs/from-kopf.md has %d rows", len(rows))
	}
	for _, fault := range unprovenRows(rows, testsOfRows(readPage(t, listed)), testsOf(t, "..")) {
		t.Errorf("docs/from-kopf.md and %s: %s", listed, fault)
	}
}

// TestUnprovenRowsAreFaults checks which rows of a page, and which lines of its list, are faults.
func TestUnprovenRowsAreFaults(t *testing.T) {
	const page = "## Causes\n| kopf | here |\n|---|---|\n| a | x |\n| b \\| c | y |\n"
	tests := map[string]struct {
		page, list string
		faults     []string
	}{
		"each row has tests":                 {page, "## Causes\na => TestA\nb \\| c => TestA, TestB\n", nil},
		"a row has no tests":                 {page, "## Causes\na => TestA\n", []string{`Causes: "b \\| c" has no tests`}},
		"a row has an empty list":            {page, "## Causes\na => \nb \\| c => TestA\n", []string{`Causes: "a": "" is not a test`}},
		"a test does not exist":              {page, "## Causes\na => TestC\nb \\| c => TestA\n", []string{`Causes: "a": "TestC" is not a test`}},
		"a row is in another section":        {page, "## Filters\na => TestA\n## Causes\nb \\| c => TestA\n", []string{`Causes: "a" has no tests`, `Filters: "a" is not a row`}},
		"a row has a cell too few":           {page + "| a | x | y |\n", "## Causes\na => TestA\nb \\| c => TestA\n", []string{`Causes: "a" has 3 cells, its table 2`}},
		"two rows have one name":             {page + "| a | z |\n", "## Causes\na => TestA\nb \\| c => TestA\n", []string{`Causes: "a" is there twice`}},
		"each table has a head":              {page + "\n| kopf |\n|---|\n| d |\n", "## Causes\na => TestA\nb \\| c => TestA\nd => TestB\n", nil},
		"a block of code has no table":       {page + "```yaml\n| e |\n| f |\n```\n", "## Causes\na => TestA\nb \\| c => TestA\n", nil},
		"comments and blank lines of a list": {page, "# about\n\n## Causes\na => TestA\nb \\| c => TestA\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			faults := unprovenRows(tableRows(test.page), testsOfRows(test.list), map[string]bool{"TestA": true, "TestB": true})
			if diff := cmp.Diff(test.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// rowName names a row of a page by its section and its first cell.
type rowName struct{ section, cell string }

// String formats the name for messages.
func (n rowName) String() string { return fmt.Sprintf("%s: %q", n.section, n.cell) }

// tableRow is a row of a table of a page.
type tableRow struct {
	rowName
	// cells is the number of its cells, and width that of the head of its table.
	cells, width int
}

// tableRows returns the rows of all tables of a page, without heads and without code.
func tableRows(page string) (rows []tableRow) {
	section, width, code := "", 0, false
	for text := range strings.Lines(page) {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "```") {
			code = !code
		}
		if code {
			continue
		}
		if _, heading, found := strings.Cut(text, "# "); found && strings.HasPrefix(text, "#") {
			section = heading
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(text, `\|`, "\x00"), "|"), "|")
		switch {
		case !strings.HasPrefix(text, "|"):
			width = 0
		case width == 0:
			width = len(cells)
		case !strings.HasPrefix(text, "|---"):
			first := strings.ReplaceAll(strings.TrimSpace(cells[0]), "\x00", `\|`)
			rows = append(rows, tableRow{rowName{section, first}, len(cells), width})
		}
	}
	return rows
}

// namedTests are the tests of a row.
type namedTests struct {
	rowName
	tests []string
}

// testsOfRows reads a list of rows with their tests: lines "row => TestA, TestB" below the headings of a page.
func testsOfRows(list string) (out []namedTests) {
	section := ""
	for text := range strings.Lines(list) {
		text = strings.TrimSuffix(text, "\n")
		if heading, found := strings.CutPrefix(text, "## "); found {
			section = heading
		} else if cell, tests, found := strings.Cut(text, " => "); found {
			out = append(out, namedTests{rowName{section, cell}, strings.Split(tests, ", ")})
		}
	}
	return out
}

// unprovenRows returns the faults of rows and of the list of their tests. There has the names of all tests.
func unprovenRows(rows []tableRow, list []namedTests, there map[string]bool) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	listed := map[rowName][]string{}
	for _, named := range list {
		listed[named.rowName] = named.tests
	}
	known := map[rowName]bool{}
	for _, row := range rows {
		switch tests := listed[row.rowName]; {
		case row.cells != row.width:
			fault("%s has %d cells, its table %d", row, row.cells, row.width)
		case known[row.rowName]:
			fault("%s is there twice", row)
		case len(tests) == 0:
			fault("%s has no tests", row)
		}
		known[row.rowName] = true
	}
	for _, named := range list {
		if !known[named.rowName] {
			fault("%s is not a row", named.rowName)
		}
		for _, test := range named.tests {
			if !there[test] {
				fault("%s: %q is not a test", named.rowName, test)
			}
		}
	}
	return faults
}
