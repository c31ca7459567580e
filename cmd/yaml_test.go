// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// TestAnAnswerInYAMLSaysTheSame: whatever texts an object has, the answer is YAML with the same values as in JSON.
func TestAnAnswerInYAMLSaysTheSame(t *testing.T) {
	for name, text := range map[string]string{
		"DEL": "a\x7fb", "C1": "a\u0085b\u009b2Jc", "a byte order mark": "\ufeffa", "no character": "\uffff", "lines": "  a\n b\n\n", "a tab": "\ta: b\n\tc",
		"a number": "1e3", "null": "null", "a date": "2026-01-01", "a boolean": "yes", "a colon": "a: b", "a hash": "a #b", "a space at the end": "a \n",
		"CR": "a\r\nb", "a line separator": "a\u2028b", "an empty line first": "\n a", "a comment": "# a\nb", "a list": "- a\n- b", "an emoji": "😀",
		"a directive": "%a\nb", "a space": " ", "a line break": "\n", "two": "\n\n  x", "two directions": "a\u202eb",
	} {
		t.Run(name, func(t *testing.T) {
			answer := why.Answer{Operator: "foo", Name: "web", Verdict: "ready", Generation: 1 << 60, Conditions: []why.Condition{{Type: "Ready", Status: "True", Message: text}}}
			b := newBench(t)
			if code := b.execute(t.Context(), []string{"why", "foo/web", "-o", "yaml", "--address", answering(t, answer)}); code != exitOK {
				t.Fatalf("exit %d: %s", code, b.err.String())
			}
			var tree map[string]any
			if err := yaml.Unmarshal([]byte(b.out.String()), &tree); err != nil {
				t.Fatalf("%v:\n%s", err, b.out.String())
			}
			data, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			var got why.Answer
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(answer, got); diff != "" {
				t.Errorf("the answer (-want +got):\n%s\n%s", diff, b.out.String())
			}
		})
	}
}
