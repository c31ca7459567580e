// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextIsBrokenIntoAFewLines(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"what is short stays as it is":            {"the Job runs", []string{"the Job runs"}},
		"a line ends between words":               {"the Job runs on a node", []string{"the Job runs", "on a node"}},
		"a line may be full":                      {"123456789012 345", []string{"123456789012", "345"}},
		"a long word breaks behind a mark":        {"status.replicas.ready", []string{"status.", "replicas.", "ready"}},
		"a long word goes on in a line":           {"1: status.replicas", []string{"1: status.", "replicas"}},
		"one without a mark breaks anywhere":      {"abcdefghijklmnop", []string{"abcdefghijkl", "mnop"}},
		"what is too long is cut off":             {"one two three four five six seven eight nine", []string{"one two", "three four", "five six…"}},
		"what is cut off ends with no mark":       {"aaaaaaaaaaaa bbbbbbbbbbbb cccccc, ddddd eeeee", []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccc…"}},
		"line breaks and tabs are spaces":         {"a\nb\r\n\tc\u2028d", []string{"a b c d"}},
		"letters of wide scripts count twice":     {"日本語日本語日本", []string{"日本語日本語", "日本"}},
		"accents of their own count for nothing":  {"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", []string{"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"}},
		"what cannot be shown is shown to be so":  {"a\x00b\x1b[0m", []string{"a\ufffdb\ufffd[0m"}},
		"what is no text is shown to be so":       {"a\xffb", []string{"a\ufffdb"}},
		"there is nothing of nothing":             {" \n ", nil},
		"marks that turn text around are not let": {"a\u202eb", []string{"a\ufffdb"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := wrapped(test.text, 12, 3)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, line := range got {
				if columns(line) > 12 {
					t.Errorf("%q has %d columns", line, columns(line))
				}
			}
		})
	}
}
