// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

func TestAPredicateIsTextTrueOrFalse(t *testing.T) {
	tests := map[string]struct {
		text, want, said string
	}{
		"text":                           {"self.a", "self.a", ""},
		"true":                           {"true", "true", ""},
		"false in capitals, as YAML has": {"FALSE", "false", ""},
		"true with a capital":            {"True", "true", ""},
		"text that ends with its line":   {"|\n  self.a\n\n", "self.a", ""},
		"a number":                       {"1", "", "1:1 a: want an expression that is true or false, found the number 1"},
		"blanks":                         {"'  '", "", `1:1 a: want an expression that is true or false, found the text " "`},
		"a list":                         {"[a]", "", "1:1 a: want an expression that is true or false, found a list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := node(t, test.text)
			d, got := form.NewDecoder(root), form.Predicate("")
			d.Value("a", root, &got)
			if string(got) != test.want || said(d) != test.said {
				t.Errorf("read %q and said %q, want %q and %q", got, said(d), test.want, test.said)
			}
		})
	}
}
