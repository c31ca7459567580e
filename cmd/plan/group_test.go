// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestEqualChangesAreOneGroup holds that objects that change in the same way are shown together, also if the changes have
// their own names in them, and that the report keeps the changes as they are.
func TestEqualChangesAreOneGroup(t *testing.T) {
	changed := func(name, message string) Change {
		return Change{Action: Changed, Kind: "Site", Name: name, Fields: []Field{{Path: "status.message", Before: "Deployment shop/" + name + ": " + message, After: "ready"}}}
	}
	report := &Report{Changes: []Change{changed("a", "waits"), changed("s0", "waits"), changed("s01", "waits"), changed("b", "is in a zone of b2")}}
	var got [][]string
	for _, g := range report.Groups() {
		got = append(got, append([]string{g.Fields[0].Before.(string)}, g.Names...))
	}
	want := [][]string{{"Deployment shop/NAME: waits", "a", "s0", "s01"}, {"Deployment shop/b: is in a zone of b2", "b"}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(changed("a", "waits"), report.Changes[0]); diff != "" {
		t.Errorf("the report has another change (-want +got):\n%s", diff)
	}
}

// TestAWordIsReplacedWhole holds where a name counts.
func TestAWordIsReplacedWhole(t *testing.T) {
	for text, want := range map[string]string{
		"a": "NAME", "a-web": "NAME-web", "data": "data", "aa": "aa", "a a": "NAME NAME", "x/a.b a1 1a": "x/NAME.b a1 1a", "": "",
	} {
		if got := replaceWord(text, "a", anyName); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
