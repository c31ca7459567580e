// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestTheReferenceIsThatOfTheForm holds the generated part of docs/reference.md against the form.
func TestTheReferenceIsThatOfTheForm(t *testing.T) {
	const file = "../../docs/reference.md"
	const begin, end = "<!-- generated: every field -->\n", "<!-- end of what is generated -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the reference", file)
	}
	want := before + begin + config.Reference(handlers.Standard()) + "\n" + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(data) {
		t.Errorf("%s is not current; run this test with -update", file)
	}
}
