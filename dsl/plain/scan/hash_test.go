// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	values "github.com/handwerk-dev/handwerk/dsl/plain"
)

// TestHashIsThatOfTheTree holds that a value has the same hash as text and as a tree.
func TestHashIsThatOfTheTree(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                    `{}`,
		"texts":                      `{"a": "b", "empty": "", "ü": "ß"}`,
		"escapes in texts and keys":  `{"a\"b": "\u00fc\n\\", "c": "\ud83d\ude00", "d": "\ud83d"}`,
		"text that is not UTF-8":     "{\"a\": \"\xff\"}",
		"numbers":                    `{"a": 0, "b": -1, "c": 12345678901234567, "d": 9223372036854775807, "e": 9223372036854775808, "f": 1.0, "g": 0.5, "h": 1e3, "i": -0}`,
		"lists":                      `{"a": [], "b": [1, 2], "c": [[1], 2], "d": [{}, {"e": null}]}`,
		"other values, and spaces":   "{ \"a\" : true ,\n\"b\":false, \"c\": null }",
		"maps below maps":            `{"a": {"b": {"c": "d"}}, "e": {"b": {"c": "d"}}}`,
		"texts that look like JSON":  `{"a": "{\"b\": [1, 2]}", "c": "]}", "d": "\\"}`,
		"numbers that end a list":    `{"a": [1,2], "b": [-3], "c": [4.5]}`,
		"an object of a real server": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"b":"c"},"resourceVersion":"7"},"data":{"d":"e\tf"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if !Regular([]byte(text)) {
				t.Fatal("the text is not regular")
			}
			want, err := values.Hash(Tree([]byte(text)))
			if got := Hash([]byte(text), nil); got != want || err != nil {
				t.Errorf("the hash is %x, want %x (%v)", got, want, err)
			}
		})
	}
}

// TestHashLeavesMembersOut holds that the members of the value itself are left out, and not those below.
func TestHashLeavesMembersOut(t *testing.T) {
	except := func(key []byte) bool { return string(key) == "b" }
	got, want := Hash([]byte(`{"a": {"b": 1}, "b": 2}`), except), Hash([]byte(`{"a": {"b": 1}}`), nil)
	if got != want {
		t.Errorf("the hash is %x, want %x", got, want)
	}
}
