// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestThePageNamesTestsThatExist holds that docs/security.md proves what it says: each test that it
// names is there.
func TestThePageNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := testsOf(t, "..")
	named := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(string(page), -1)
	if len(named) < 20 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("docs/security.md names %s, which is no test", name)
		}
	}
}

// TestEachRowForKopfNamesItsTests holds that each row of each table of docs/from-kopf.md says which tests show it, and that
// these are there.
func TestEachRowForKopfNamesItsTests(t *testing.T) {
	page, err := os.ReadFile("../docs/from-kopf.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, faults := provenRows(string(page), testsOf(t, ".."))
	if rows < 150 {
		t.Errorf("the page has %d rows", rows)
	}
	for _, fault := range faults {
		t.Errorf("docs/from-kopf.md:%s", fault)
	}
}

// TestRowsThatProveNothingAreFaults holds that the rows of a page are looked at.
func TestRowsThatProveNothingAreFaults(t *testing.T) {
	const head = "| what | shown by |\n|---|---|\n"
	tests := map[string]struct {
		page   string
		rows   int
		faults []string
	}{
		"rows that name tests":            {head + "| a | `TestA` |\n| b \\| c | `TestA`, `TestB` |\n", 2, nil},
		"a row without a test":            {head + "| a | |\n", 1, []string{"3: the row ends with no test"}},
		"a row with more than tests":      {head + "| a | as `TestA` says |\n", 1, []string{"3: the row ends with no test"}},
		"a test that is not there":        {head + "| a | `TestC` |\n", 1, []string{"3: TestC is no test"}},
		"one that the text names":         {"See `TestC`.\n", 0, []string{"1: TestC is no test"}},
		"a row with a cell too few":       {head + "| `TestA` |\n", 1, []string{"3: the row has 1 cells, its table 2"}},
		"a second table has its own head": {head + "\n| what | kopf | shown by |\n|---|---|---|\n| a | b | `TestA` |\n", 1, nil},
		"a block of code is no table":     {"```yaml\n| a |\n| TestC |\n| b |\n```\n" + head + "| a | `TestA` |\n", 1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rows, faults := provenRows(test.page, map[string]bool{"TestA": true, "TestB": true})
			if diff := cmp.Diff(test.faults, faults); diff != "" || rows != test.rows {
				t.Errorf("%d rows, want %d; faults (-want +got):\n%s", rows, test.rows, diff)
			}
		})
	}
}

var (
	testName  = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testsOnly = regexp.MustCompile("^`Test\\w+`(, `Test\\w+`)*$")
)

// provenRows counts the rows of the tables of a page, but for their heads, and says, each with its line, which do not end with
// names of tests, and which names there are no tests of.
func provenRows(page string, there map[string]bool) (rows int, faults []string) {
	code, width, line := false, 0, 0
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%d: %s", line, fmt.Sprintf(format, args...)))
	}
	for text := range strings.Lines(page) {
		line++
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, name := range testName.FindAllString(text, -1) {
			if !there[name] {
				fault("%s is no test", name)
			}
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(text, `\|`, "or"), "|"), "|")
		switch {
		case !strings.HasPrefix(text, "|"):
			width = 0
		case width == 0:
			width = len(cells)
		case strings.HasPrefix(text, "|---"):
		case len(cells) != width:
			rows++
			fault("the row has %d cells, its table %d", len(cells), width)
		default:
			if rows++; !testsOnly.MatchString(strings.TrimSpace(cells[width-1])) {
				fault("the row ends with no test")
			}
		}
	}
	return rows, faults
}

// testsOf finds the tests below a folder.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared, found := regexp.MustCompile(`(?m)^func (Test\w+)\(`), map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
