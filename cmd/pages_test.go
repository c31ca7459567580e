// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
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

// TestPagesAreReadToTheirEnd holds that pages stay short: no page grows into a book.
func TestPagesAreReadToTheirEnd(t *testing.T) {
	for pages, most := range map[string]int{
		"docs/language.md": 5000,
		"docs/deploy.md":   2000,
		"README.md docs/start.md docs/language.md docs/semantics.md docs/recipes.md docs/machines.md docs/go.md docs/troubleshooting.md": 20000,
	} {
		words := 0
		for page := range strings.FieldsSeq(pages) {
			text, err := os.ReadFile(filepath.Join("..", page))
			if err != nil {
				t.Fatal(err)
			}
			words += len(strings.Fields(string(text)))
		}
		if words > most {
			t.Errorf("%s: %d words, want at most %d", pages, words, most)
		}
	}
}

// TestTheExpressionsOfThePageGiveWhatItSays evaluates the first piece of code in each row of the table of docs/language.md with what
// one writes for what one wants.
func TestTheExpressionsOfThePageGiveWhatItSays(t *testing.T) {
	page := pageAt(t, "../docs/language.md")
	spec := regexp.MustCompile("whose spec is\\s+`([^`]+)`").FindStringSubmatch(page)
	_, table, found := strings.Cut(page, "| you want | write | it gives |\n|---|---|---|\n")
	if spec == nil || !found {
		t.Fatal("docs/language.md has no table of expressions, or no object for it")
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	object := "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: corner, creationTimestamp: \"2020-01-01T00:00:00Z\"}\nspec: " + spec[1] + "\n"
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		write := codeSpan.FindString(cells[2])
		t.Run(strings.TrimSpace(cells[1]), func(t *testing.T) {
			b := newBench(t)
			if code := b.execute(t.Context(), []string{"eval", strings.Trim(write, "`"), "-f", file, "-o", "json"}); code != exitOK {
				t.Fatal(b.err.String())
			}
			want := cmp.Or(strings.Trim(strings.TrimSpace(cells[3]), "`"), "null")
			if got := strings.Join(strings.Fields(b.out.String()), ""); got != want {
				t.Errorf("%s gives %s, the page says %s", write, got, want)
			}
		})
	}
}
