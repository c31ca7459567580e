// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// wickedText clears a screen, sets a title, and turns the direction of text, also without an escape character.
const wickedText = "a\x1b[2J\x1b]0;b\x07\u009b2Jc\u202ed\u2028e\u2066f\x7fg\x1b[31mh"

func TestAnAnswerSteersNoTerminal(t *testing.T) {
	answer := why.Answer{Operator: "foo", Name: "web", Health: "ready", Conditions: []why.Condition{{Type: "Ready", Status: "True", Message: wickedText}}}
	for _, format := range []string{"json", "yaml", "text"} {
		b := newBench(t)
		if code := b.execute(t.Context(), []string{"why", "foo/web", "-o", format, "--address", answering(t, answer)}); code != exitOK {
			t.Errorf("exit %d: %s", code, b.err.String())
		}
		if got := b.out.String(); strings.ContainsFunc(got, plain.Steers) || !strings.Contains(got, `c\u202ed`) {
			t.Errorf("%s: %q", format, got)
		}
	}
}

// TestAnErrorSteersNoTerminal: the process at an address may be anybody's.
func TestAnErrorSteersNoTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, wickedText) }))
	defer server.Close()
	b := newBench(t)
	b.execute(t.Context(), []string{"status", "--address", server.Listener.Addr().String()})
	if got := b.err.String(); strings.ContainsFunc(got, plain.Steers) || got == "" {
		t.Errorf("%q", got)
	}
}

// TestARetrySteersNoTerminal: it repeats a condition, which is a text of those who may write the status.
func TestARetrySteersNoTerminal(t *testing.T) {
	lab(t, func(t *testing.T, c *kit.Cluster, run func(string) (int, string)) {
		c.Update("foos.v1.example.com", "default", "web", func(o *unstructured.Unstructured) {
			failing := map[string]any{"type": "HandlersFailing", "status": "True", "reason": "X", "message": wickedText}
			o.Object["status"] = map[string]any{"conditions": []any{failing}}
		})
		c.Settle()
		if _, said := run("retry foo/web --operator op"); strings.ContainsFunc(said, plain.Steers) {
			t.Errorf("%q", said)
		}
	})
}

func TestOnlyTheProgramsColorsReachATerminal(t *testing.T) {
	for name, tt := range map[string]struct {
		colors     bool
		text, want string
	}{
		"a color, with colors":      {true, red + "a" + reset + "\n", red + "a" + reset + "\n"},
		"a color, without colors":   {false, red + "a", `\u001b[31ma`},
		"no color, with colors":     {true, red + "\x1b[2Ja\x9b", red + `\u001b[2Ja` + "\uFFFD"},
		"the layout of an answer":   {true, "a:\n\tb\n", "a:\n\tb\n"},
		"letters, signs and emojis": {false, "Größe „x“ 😀", "Größe „x“ 😀"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if n, err := (tame{Writer: &out, colors: tt.colors}).Write([]byte(tt.text)); n != len(tt.text) || err != nil {
				t.Errorf("%d bytes are said to be written of %d: %v", n, len(tt.text), err)
			}
			if out.String() != tt.want {
				t.Errorf("%q is written, want %q", out.String(), tt.want)
			}
		})
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	for name, tt := range map[string]struct {
		width      int
		text, want string
	}{
		"no terminal has no width":          {0, strings.Repeat("word ", 99), strings.Repeat("word ", 99)},
		"a short line stays":                {40, "a short line\n", "a short line\n"},
		"words of a sentence":               {30, "  handler one failed because of something\n", "  handler one failed because\n    of something\n"},
		"the last column goes on below":     {44, "NAME      STATE    the reason is a long sentence of words\n", "NAME      STATE    the reason is a long\n                   sentence of words\n"},
		"a last column without room":        {30, "A NAME THAT IS LONG ENOUGH  why it is\n", "A NAME THAT IS LONG ENOUGH\n  why it is\n"},
		"a word that is too long":           {20, strings.Repeat("x", 30) + " and\n", strings.Repeat("x", 30) + "\n  and\n"},
		"colors take no room":               {20, red + "0123456789 01234567" + reset + "\n", red + "0123456789 01234567" + reset + "\n"},
		"wide letters take two columns":     {12, "日本 日本 日本 日本\n", "日本 日本\n  日本 日本\n"},
		"each line of a text is on its own": {10, "one two three\nfour\n", "one two\n  three\nfour\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, (tame{width: tt.width}).fit(tt.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestColorsAreForTerminals holds that validate has colors on a terminal, and never elsewhere.
func TestColorsAreForTerminals(t *testing.T) {
	for name, tt := range map[string]struct {
		terminal bool
		env      string
		colors   bool
	}{
		"on a terminal":               {true, "", true},
		"in a pipe":                   {false, "", false},
		"on a terminal with NO_COLOR": {true, "NO_COLOR=1", false},
	} {
		t.Run(name, func(t *testing.T) {
			for file, want := range map[string]string{"../samples/foo/operator.yaml": green + "ok" + reset, "testdata/crd/faulty.yaml": red + "error:" + reset} {
				b := standard(t)
				b.shows, b.Env = func(io.Writer) bool { return tt.terminal }, append(b.Env, tt.env)
				b.execute(t.Context(), []string{"validate", "--config", file})
				said := b.out.String() + b.err.String()
				if strings.Contains(said, want) != tt.colors || strings.Contains(said, "\x1b") != tt.colors {
					t.Errorf("whether there are colors is %v, want %v:\n%s", !tt.colors, tt.colors, said)
				}
			}
		})
	}
}
