// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package words_test

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

func TestNearest(t *testing.T) {
	known := []string{"create", "update", "delete", "resume", "resync", "if"}
	tests := map[string]struct{ word, want string }{
		"a letter left out":            {"creat", "create"},
		"a letter too many":            {"updatee", "update"},
		"a wrong letter":               {"delate", "delete"},
		"two letters swapped":          {"resmue", "resume"},
		"another case":                 {"DELETE", "delete"},
		"the nearest of several":       {"resumc", "resume"},
		"the word itself":              {"resync", "resync"},
		"a third of the letters wrong": {"resxxe", "resume"},
		"more than a third wrong":      {"rxxxme", ""},
		"a short word must be exact":   {"of", ""},
		"a short word in another case": {"IF", "if"},
		"nothing near":                 {"reconcile", ""},
		"no word":                      {"", ""},
		"a word that is far too long":  {strings.Repeat("create", 1000), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, found := words.Nearest(test.word, known)
			if got != test.want || found != (test.want != "") {
				t.Errorf("Nearest(%q) = %q, %v, want %q", test.word, got, found, test.want)
			}
		})
	}
	if got, found := words.Nearest("word", nil); found {
		t.Errorf("Nearest found %q among nothing", got)
	}
}

func TestHint(t *testing.T) {
	for name, test := range map[string]struct {
		word  string
		known []string
		want  string
	}{
		"a word that is near": {"creat", []string{"create", "update"}, `did you mean "create"?`},
		"a word that is not":  {"zz", []string{"create", "update"}, "want one of create, update"},
		"the only word":       {"zz", []string{"create"}, "want create"},
		"no word is known":    {"zz", nil, "there are none"},
		"no word":             {"", []string{"create", "update"}, "want one of create, update"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words.Hint(test.word, test.known); got != test.want {
				t.Errorf("Hint() = %s, want %s", got, test.want)
			}
		})
	}
}
