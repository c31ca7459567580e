// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLinksOfPagesLeadSomewhere holds that each link of a page to another file of the repository leads to a file, and to a
// heading where it names one.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range allPages(t) {
		for _, link := range linksOf(pageAt(t, page)) {
			links++
			if why := leadsNowhere(t, page, link); why != "" {
				t.Errorf("%s: link %s: %s", page, link, why)
			}
		}
	}
	if links < 100 {
		t.Errorf("the pages have %d links", links)
	}
}

// allPages returns the pages of the repository, relative to this package.
func allPages(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "samples/*.md", "samples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pages...)
	}
	return out
}

// leadsNowhere says why a link of a page leads nowhere; empty where it does lead somewhere.
func leadsNowhere(t *testing.T, page, link string) string {
	t.Helper()
	file, heading, _ := strings.Cut(link, "#")
	if file = filepath.Join(filepath.Dir(page), file); strings.HasPrefix(link, "#") {
		file = page
	}
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if heading != "" && !anchorsOf(pageAt(t, file))[heading] {
		return "the page has no such heading"
	}
	return ""
}

// pageAt reads a page.
func pageAt(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	codeSpan  = regexp.MustCompile("`[^`]*`")
	linkTo    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headline  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// linksOf returns the links of a page to files of the repository, without those in code.
func linksOf(page string) (out []string) {
	page = codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(page, ""), "")
	for _, link := range linkTo.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(link[1], "://") {
			out = append(out, link[1])
		}
	}
	return out
}

// anchorsOf returns the names under which GitHub serves the headings of a page.
func anchorsOf(page string) map[string]bool {
	out, times := map[string]bool{}, map[string]int{}
	for _, heading := range headline.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		text := regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(heading[1], "")
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, times[name]-1)
		}
		out[name] = true
	}
	for _, target := range regexp.MustCompile(`<a id="([^"]*)"></a>`).FindAllStringSubmatch(page, -1) {
		out[target[1]] = true
	}
	return out
}

// TestLinksAndHeadingsAreFound holds that links are seen as readers see them, and headings are named as GitHub names them.
func TestLinksAndHeadingsAreFound(t *testing.T) {
	const page = "# A [page](b.md)\n## `ready`: whether, or not\n## Twice\n## Twice\n" +
		"[one](c.md#d), [two](https://example.com), `x[y](z)`, [`three`](#a-page)\n```md\n# no heading\n[no link](e.md)\n```\n"
	if diff := cmp.Diff([]string{"b.md", "c.md#d", "#a-page"}, linksOf(page)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	want := map[string]bool{"a-page": true, "ready-whether-or-not": true, "twice": true, "twice-1": true}
	if diff := cmp.Diff(want, anchorsOf(page)); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
}
