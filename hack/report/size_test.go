// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestLinesOfCode(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want int
	}{
		"an empty file has none":                       {"", 0},
		"comments and empty lines do not count":        {"// Package a.\npackage a\n\n/* over\nlines */\nvar b int // c\n", 2},
		"braces count":                                 {"package a\nfunc b() {\n}\n", 3},
		"a text over lines counts each of them":        {"package a\nconst b = `1\n2\n\n4`\n", 5},
		"code after a comment counts":                  {"package a\n/* b */ var c int\n", 2},
		"the end of a file needs no end of line":       {"package a", 1},
		"an address in a text does not begin comments": {"package a\nconst b = \"http://c\"\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := codeLines([]byte(c.code)); got != c.want {
				t.Errorf("got %d lines, want %d", got, c.want)
			}
		})
	}
}

func TestAreas(t *testing.T) {
	for name, want := range map[string]string{
		"cmd/run.go":                       "cmd",
		"engine/reconcile/reconcile.go":    "engine/reconcile",
		"sandbox/server/custom/decode.go":  "sandbox/server",
		"engine/reconcile/pass_test.go":    "",
		"dsl/config/testdata/a/handler.go": "",
		"README.md":                        "",
	} {
		got := ""
		if isProduct(name) {
			got = areaOf(name)
		}
		if got != want {
			t.Errorf("%s is in area %q, want %q", name, got, want)
		}
	}
}
