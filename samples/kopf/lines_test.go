// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// row is one of the table of docs/from-kopf.md: an example, its lines, and where it is here.
var row = regexp.MustCompile(`(?m)^\| \d\d-[a-z-]+ \| \d+ \| (\d+) \(\[\w+\]\(\.\./samples/kopf/([^)]+)\)\) \|`)

// TestLinesOfKopfsExamples holds that docs/from-kopf.md has each example of this folder, with as many lines as it has.
func TestLinesOfKopfsExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-kopf.md")
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string]int{}
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		stated[found[2]], _ = strconv.Atoi(found[1])
	}
	files, err := filepath.Glob("[0-9][0-9]*")
	if err != nil || len(files) < 17 || len(stated) != len(files) {
		t.Fatalf("there are %d examples, and the page has %d (%v)", len(files), len(stated), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//") {
				count++
			}
		}
		if stated[file] != count {
			t.Errorf("docs/from-kopf.md says that %s has %d lines, it has %d", file, stated[file], count)
		}
	}
}
