// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// lineRow is a row of README's table of lines: a sample, its lines, and its lines in block style.
var lineRow = regexp.MustCompile(`(?m)^\|[^|]*\| \[([a-z-]+)\]\([a-z-]+\) (\d+) \| (\d+) \|`)

// TestTheTableOfLinesCountsTheSamples holds that README's comparison has the lines that the samples have today.
func TestTheTableOfLinesCountsTheSamples(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := lineRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 {
		t.Fatal("README.md has no row of lines")
	}
	cases := 0
	for _, row := range rows {
		operator, err := os.ReadFile(filepath.Join(row[1], "operator.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := countLines(string(operator)), row[2]; strconv.Itoa(got) != want {
			t.Errorf("%s has %d lines, and README.md says %s", row[1], got, want)
		}
		if got, want := countLines(inBlocks(t, operator)), row[3]; strconv.Itoa(got) != want {
			t.Errorf("%s has %d lines in block style, and README.md says %s", row[1], got, want)
		}
		files, err := filepath.Glob(filepath.Join(row[1], "*_test.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("finding cases of %s: %v, %v", row[1], files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cases += countLines(string(text))
		}
	}
	if want := "ours for these operators are " + strconv.Itoa(cases) + " lines"; !strings.Contains(string(page), want) {
		t.Errorf("README.md does not say: %s", want)
	}
}

// countLines counts the lines of a text that are neither blank nor a comment.
func countLines(text string) int {
	lines := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	return lines
}

// inBlocks writes YAML with each field on a line of its own, and without anchors and comments.
func inBlocks(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
