// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
	"regexp"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// tame writes what commands say of a cluster. Texts of objects, of errors and of answers get no control over a terminal: what
// steers it is escaped as in JSON, so that answers in JSON and YAML remain what they are. Each write has whole characters.
type tame struct {
	io.Writer
	// colors lets colors through. Texts of others are escaped before they get one.
	colors bool
}

// colored finds the colors that this program sets.
var colored = regexp.MustCompile(`\x1b\[[0-9]{1,2}m`)

// Write writes text.
func (t tame) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.Writer, t.escaped(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (t tame) escaped(text string) string {
	const layout = "\n\t"
	if !t.colors {
		return plain.Escaped(text, layout)
	}
	var out strings.Builder
	at := 0
	for _, found := range colored.FindAllStringIndex(text, -1) {
		out.WriteString(plain.Escaped(text[at:found[0]], layout) + text[found[0]:found[1]])
		at = found[1]
	}
	out.WriteString(plain.Escaped(text[at:], layout))
	return out.String()
}
