// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"regexp"
	"strings"
)

// rewrite puts a word in the place of what is different at each run.
type rewrite struct {
	pattern *regexp.Regexp
	by      string
}

// rewrites are done in their order.
var rewrites = []rewrite{
	// A kubectl that has seen enough sometimes ends its watch in the middle of an event.
	{regexp.MustCompile(`(?m)^[IWE]\d{4} .*reflector\.go:\d+\] "Warning: watch ended with error".*context canceled.*\n`), ""},
	{regexp.MustCompile(`(?m)^[IWE]\d{4} .*request\.go:\d+\] "Unexpected error when reading response body".*Client\.Timeout.*\n`), ""}, // of a busy machine; kubectl goes on
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.0-9]* [-+]\d{4}( \w+)?`), "<time>"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [-+]\d{4}`), "<time>"},
	{regexp.MustCompile(`(LIVE|MERGED)-\d+`), "$1"},
	{regexp.MustCompile(`(?i)("?resource ?version"?: +)"?\d+"?`), "$1<version>"},
	{regexp.MustCompile(`\bweb-[0-9a-f]{6,10}(-[0-9a-z]{5})?\b`), "web-<hash>"},
	{regexp.MustCompile(`pod-template-hash=\S+`), "pod-template-hash=<hash>"},
	{regexp.MustCompile(`(generated-|work-|tick-)[0-9a-z]{5}\b`), "$1<5>"},
	{regexp.MustCompile(`\b(10|198|172)\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`\b(node|kwok)-\d+\b`), "<node>"},
	{regexp.MustCompile(`:3[0-2]\d{3}\b`), ":<port>"},
	{regexp.MustCompile(`\b(\d+[hms]){1,3}\b`), "<age>"},
	{regexp.MustCompile(`<invalid>`), "<age>"},
	{regexp.MustCompile(`kubectl-edit-\d+`), "kubectl-edit-<n>"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	{regexp.MustCompile(`([^\s]) {2,}`), "$1  "}, // the width of a column is that of its longest cell
	{regexp.MustCompile(`-{6,}`), "------"},
}

// names knows the names that belong to one session.
type names struct{ replacer *strings.Replacer }

func newNames(namespace, dir string) names {
	return names{strings.NewReplacer(namespace, "<ns>", dir, "<dir>")}
}

// of returns an output with stable words in place of what is different at each run.
func (n names) of(text string) string {
	text = n.replacer.Replace(text)
	for _, each := range rewrites {
		text = each.pattern.ReplaceAllString(text, each.by)
	}
	return text
}
