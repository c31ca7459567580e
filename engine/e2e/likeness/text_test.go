// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"fmt"
	"regexp"
	"strings"
)

// rewrites put words in the place of what each server chooses, in their order.
var rewrites = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`(resource version|current): \d+( \(\d+\))?`), "$1: <version>"},
	{regexp.MustCompile(`(ResourceVersion in (the precondition|record)) \(\d+\)`), "$1 (<version>)"},
	{regexp.MustCompile(`ResourceVersion in (precondition|object meta): \d+`), "ResourceVersion in $1: <version>"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`^\d+(\.\d+)?(ms|s|m)$`), "<age>"},
}

var uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// text returns a text without what each server chooses.
func (p *plain) text(text string) string {
	text = strings.ReplaceAll(text, p.namespace, "<ns>")
	text = uid.ReplaceAllStringFunc(text, func(id string) string {
		if p.uids[id] == "" {
			p.uids[id] = fmt.Sprintf("<uid %d>", len(p.uids)+1)
		}
		return p.uids[id]
	})
	for _, each := range rewrites {
		text = each.pattern.ReplaceAllString(text, each.by)
	}
	return text
}
