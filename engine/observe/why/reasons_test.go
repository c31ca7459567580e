// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the reasons in docs/troubleshooting.md")

// TestEachReasonIsComplete holds that all that is to be said of a reason is in its row, and that no two have the same word.
func TestEachReasonIsComplete(t *testing.T) {
	for _, r := range reasons {
		switch {
		case r.word == "" || r.cure == "":
			t.Errorf("%+v has no word, or no cure", *r.row)
		case r.says == "" && r.idle == "":
			t.Errorf("%s has no sentence", r)
		case Known(r.word) != r:
			t.Errorf("two reasons are %s", r)
		}
	}
}

// TestReasonsInTheDocs holds the table of docs/troubleshooting.md equal to the rows.
func TestReasonsInTheDocs(t *testing.T) {
	const path, begins, ends = "../../../docs/troubleshooting.md", "-run TestReasonsInTheDocs -update -->\n", "<!-- end of the reasons -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), begins)
	table, tail, ended := strings.Cut(rest, ends)
	if !found || !ended {
		t.Fatalf("%s has no place for the reasons", path)
	}
	want := documented()
	if *update {
		if err := os.WriteFile(path, []byte(head+begins+want+ends+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, table); diff != "" {
		t.Errorf("the docs have other reasons (-want +got); write them with -update:\n%s", diff)
	}
}

// documented is the table for the docs.
func documented() string {
	var out strings.Builder
	out.WriteString("| reason | the answer says | so | what to do |\n|---|---|---|---|\n")
	for _, r := range reasons {
		says := cmp.Or(r.idle, "handler … "+r.says)
		if r.page != "" {
			says = fmt.Sprintf("[%s](%s)", says, r.page)
		}
		of := string(r.handler)
		if r.idle != "" {
			of = "no handler runs"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", r.word, filled(says, "…"), of, r.cure)
	}
	return out.String()
}
