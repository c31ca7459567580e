// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// TestTheReferenceIsCurrent holds docs/reference.md against the texts of the code.
func TestTheReferenceIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page(), string(got)); diff != "" {
		t.Errorf("docs/reference.md is not current, make reference writes it (-want +got):\n%s", diff)
	}
}

// TestEveryLinkWithinTheReferenceLeadsToASection holds that anchors differ, that no link leads nowhere, and that links can lead to
// fields and functions.
func TestEveryLinkWithinTheReferenceLeadsToASection(t *testing.T) {
	text, found := page(), map[string]bool{}
	for _, heading := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(text, -1) {
		to := anchor(heading[1])
		if found[to] {
			t.Errorf("two headings have the anchor %s", to)
		}
		found[to] = true
	}
	for _, target := range regexp.MustCompile(`<a id="([^"]*)"></a>`).FindAllStringSubmatch(text, -1) {
		if found[target[1]] {
			t.Errorf("two places have the anchor %s", target[1])
		}
		found[target[1]] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1)
	for _, link := range links {
		if !found[link[1]] {
			t.Errorf("a link leads to #%s, which is nowhere", link[1])
		}
	}
	for _, name := range []string{"resources.handlers.retries", "resources.handlers.apply.forEach", "settings.leaderElection.mode", "part.parameters", "test.cases.expect", "functions.merge"} {
		if !found[name] {
			t.Errorf("no link can lead to %s", name)
		}
	}
	if len(links) < 100 {
		t.Errorf("the page has %d links within it", len(links))
	}
}

// TestEveryFieldHasADescription holds that each field of ours says what it means, in sentences.
func TestEveryFieldHasADescription(t *testing.T) {
	for name, outline := range map[string]*form.Outline{
		"operator": form.NewOutline(config.Describe(handlers.Standard())), "cases": form.NewOutline(cases.Describe()),
		"part": form.NewOutline(config.DescribePart(handlers.Standard())),
	} {
		s, fields := newSections(outline, name), 0
		for _, one := range s.all {
			for _, f := range one.Fields {
				fields++
				if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
					t.Errorf("%s: %s: want a sentence, found %q", name, f.Place, f.Doc)
				}
			}
		}
		if fields < 50 {
			t.Errorf("%s: found %d fields", name, fields)
		}
	}
}

// TestFieldsAreWhereTheirKindOfHandlerCanHaveThem holds the column of the lists for a few fields of each kind.
func TestFieldsAreWhereTheirKindOfHandlerCanHaveThem(t *testing.T) {
	outline := form.NewOutline(config.Describe(handlers.Standard()))
	for path, want := range map[string]string{
		"resources.handlers.causes":    "handlers",
		"resources.handlers.apply":     "handlers",
		"resources.handlers.delete":    "handlers, schedule",
		"resources.schedule.cron":      "handlers, schedule",
		"resources.handlers.retries":   "handlers, daemons, schedule, startup, cleanup",
		"resources.daemons.stopWithin": "daemons",
		"health.timeout":               "handlers, schedule, startup, cleanup, health, ready",
		"startup.id":                   "handlers, daemons, schedule, startup, cleanup, health, ready",
		"resources.workers":            "",
	} {
		f, err := outline.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.In, ", "); got != want {
			t.Errorf("%s is in %q, want %q", path, got, want)
		}
	}
}

func TestSignsOfMarkdownAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"related.<name>":                 "related.&lt;name>",
		"Names and globs (team-*).":      `Names and globs (team-\*).`,
		"as in ${self.spec.a | b} | $":   "as in `${self.spec.a \\| b}` \\| $",
		"indexes.<name>[key], a `b` _c_": "indexes.&lt;name>\\[key], a \\`b\\` \\_c\\_",
	} {
		if got := text(in); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
	for heading, want := range map[string]string{
		"The document": "the-document", "resources[].handlers[].apply.<name>: options": "resourceshandlersapplyname-options", "`a_b`": "a_b",
	} {
		if got := anchor(heading); got != want {
			t.Errorf("anchor(%q) = %q, want %q", heading, got, want)
		}
	}
}
