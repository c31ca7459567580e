// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/samples"
)

// typed is a command of the operator in a page: a line of a console, or a piece of code in a sentence.
var typed = regexp.MustCompile("(?m)(?:^\\$ |`)operator ([a-z][^`#|\n]*)")

// TestPagesNameCommandsAndFlagsThatThereAre holds that no page has a command or a flag of operator that was renamed.
func TestPagesNameCommandsAndFlagsThatThereAre(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../README.md", "../samples/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range typed.FindAllStringSubmatch(string(text), -1) {
			found++
			b := newBench(t)
			b.samples = samples.Files()
			root := b.root()
			command, args, err := root.Find(strings.Fields(line[1]))
			if err == nil {
				err = command.ParseFlags(args)
			}
			// A sentence may leave out the value of a flag.
			if err != nil && !errors.Is(err, pflag.ErrHelp) && !strings.Contains(err.Error(), "needs an argument") {
				t.Errorf("%s: operator %s: %v", page, line[1], err)
			}
		}
	}
	if found < 30 {
		t.Errorf("the pages have %d commands", found)
	}
}

// TestDeployingIsSaidInBrief holds that docs/deploy.md stays a page that is read to its end.
func TestDeployingIsSaidInBrief(t *testing.T) {
	text, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(text))); words > 2000 {
		t.Errorf("docs/deploy.md has %d words, want at most 2,000", words)
	}
}
