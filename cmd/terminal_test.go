// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// wickedText clears a screen, sets a title, and turns the direction of text, also without an escape character.
const wickedText = "a\x1b[2J\x1b]0;b\x07\u009b2Jc\u202ed\u2028e\u2066f\x7fg\x1b[31mh"

func TestAnAnswerSteersNoTerminal(t *testing.T) {
	answer := why.Answer{Operator: "foo", Name: "web", Standing: "ready", Conditions: []why.Condition{{Type: "Ready", Status: "True", Message: wickedText}}}
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
			if n, err := (tame{&out, tt.colors}).Write([]byte(tt.text)); n != len(tt.text) || err != nil {
				t.Errorf("%d bytes are said to be written of %d: %v", n, len(tt.text), err)
			}
			if out.String() != tt.want {
				t.Errorf("%q is written, want %q", out.String(), tt.want)
			}
		})
	}
}
