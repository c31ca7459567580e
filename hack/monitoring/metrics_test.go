// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// metrics are the labels of each series of an operator by its name, as Prometheus stores it.
type metrics map[string][]string

// scraped are labels that Prometheus puts on each series.
var scraped = []string{"namespace", "job", "pod"}

// metricRow is a row of docs/metrics.md.
var metricRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([\\w, ]*) \\| ")

// listed returns the metrics of docs/metrics.md.
func listed(t *testing.T) metrics {
	t.Helper()
	out := metrics{"up": scraped}
	for _, row := range metricRow.FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		name, kind, labels := row[1], row[2], slices.Clone(scraped)
		if row[3] != "" {
			labels = append(labels, strings.Split(row[3], ", ")...)
		}
		if kind != "histogram" {
			out[name] = labels
			continue
		}
		out[name+"_sum"], out[name+"_count"] = labels, labels
		out[name+"_bucket"] = append(slices.Clone(labels), "le")
	}
	if len(out) < 20 {
		t.Fatalf("docs/metrics.md lists %v", slices.Sorted(maps.Keys(out)))
	}
	return out
}

// check holds that an expression uses no metrics and labels but those that there are.
func (m metrics) check(t *testing.T, text string) {
	t.Helper()
	expr, err := promQL.ParseExpr(text)
	if err != nil {
		t.Errorf("parsing %s: %v", text, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			labels, there := m[n.Name]
			if !there {
				t.Errorf("there is no metric %s: %s", n.Name, text)
				return nil
			}
			for _, matcher := range n.LabelMatchers {
				if matcher.Name != "__name__" && !slices.Contains(labels, matcher.Name) {
					t.Errorf("%s has no label %s: %s", n.Name, matcher.Name, text)
				}
			}
		case *parser.AggregateExpr:
			m.checkLabels(t, n.Expr, n.Grouping, text)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				m.checkLabels(t, n, n.VectorMatching.MatchingLabels, text)
			}
		}
		return nil
	})
}

// checkLabels holds that each metric of an expression has these labels.
func (m metrics) checkLabels(t *testing.T, of parser.Expr, labels []string, text string) {
	t.Helper()
	for _, path := range parser.ExtractSelectors(of) {
		name := ""
		for _, matcher := range path {
			if matcher.Name == "__name__" {
				name = matcher.Value
			}
		}
		for _, label := range labels {
			if there, known := m[name]; known && !slices.Contains(there, label) {
				t.Errorf("%s has no label %s: %s", name, label, text)
			}
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is a place of docs/troubleshooting.md as a text names it.
var section = regexp.MustCompile(`(?:"([^"]+)" in )?docs/troubleshooting\.md`)

// checkSections holds that a text names sections of docs/troubleshooting.md that there are.
func checkSections(t *testing.T, of, text string) (found int) {
	t.Helper()
	page := read(t, "docs/troubleshooting.md")
	for _, name := range section.FindAllStringSubmatch(text, -1) {
		if found++; !regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(name[1]) + `$`).MatchString(page) {
			t.Errorf("%s names section %q, which docs/troubleshooting.md has not", of, name[1])
		}
	}
	return found
}
