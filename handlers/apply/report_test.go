// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// TestAppliedSumsUp holds what the conditions of several handlers come to, and which are taken away.
func TestAppliedSumsUp(t *testing.T) {
	three := []actions.Sibling{{ID: "one", Action: "apply"}, {ID: "two", Action: "apply"}, {ID: "three", Action: "apply"}, {ID: "status", Action: "set"}}
	said := func(kind, status, reason, message string) string {
		return `{type: ` + kind + `, status: "` + status + `", reason: ` + reason + `, message: "` + message + `"}`
	}
	tests := map[string]struct {
		siblings []actions.Sibling
		there    string
		want     string
		retired  []string
	}{
		"those that have said nothing do not count": {
			siblings: three, want: "Applied=True AllApplied: All children are applied.",
		},
		"all are applied": {
			siblings: three, there: said("TwoApplied", "True", "AllApplied", "The child is applied."),
			want: "Applied=True AllApplied: All children are applied.",
		},
		"one waits": {
			siblings: three, there: said("TwoApplied", "False", "Waiting", "Waiting for Job ns/j to be ready."),
			want: "Applied=False Waiting: two: Waiting for Job ns/j to be ready.",
		},
		"one waits and one fails, which is graver": {
			siblings: three,
			there:    said("TwoApplied", "False", "Waiting", "Waiting for x.") + "," + said("ThreeApplied", "False", "Forbidden", "no"),
			want:     "Applied=False Forbidden: two: Waiting for x; three: no.",
		},
		"the condition of a handler that there was": {
			siblings: three, there: said("FourApplied", "False", "Waiting", "Waiting for x."),
			want: "Applied=True AllApplied: All children are applied.", retired: []string{"FourApplied"},
		},
		"the handler's own, when it is alone now": {
			there: said("OneApplied", "True", "AllApplied", "x"), retired: []string{"OneApplied"},
		},
		"what others call alike": {
			there: said("QuotaApplied", "True", "Ok", "x") + "," + said("AppliedOnce", "True", "AllApplied", "x"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			const child = "{a: {" + head + "{name: a}}}"
			built, err := build(t, child, actions.Build{ID: "one", Siblings: test.siblings})
			if err != nil {
				t.Fatal(err)
			}
			w := start(t, child, "{}")
			w.built, w.self["status"] = built, decoded(t, "{conditions: ["+test.there+"]}")
			if err := w.run(dsl.Create); err != nil {
				t.Fatal(err)
			}
			if test.want != "" && !slices.Contains(w.saidAll(), test.want) {
				t.Errorf("conditions %q, want %q", w.saidAll(), test.want)
			}
			if diff := cmp.Diff(test.retired, w.patch.Retired, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("taken away (-want +got):\n%s", diff)
			}
		})
	}
}
