// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestScenariosBringWhatTheyNeed(t *testing.T) {
	tests := map[string]struct{ names, want, fails string }{
		"all but a resync":               {"", "backlog children deletion heal idle memory memory20k react restart storm", ""},
		"a storm needs a backlog":        {"storm", "backlog storm", ""},
		"ConfigMaps that heal need some": {"heal", "children heal", ""},
		"changes need a restart":         {"react,resync", "react restart resync", ""},
		"bytes an object need the idle":  {"memory20k", "idle memory20k", ""},
		"memory after a restart":         {"memory,restart", "memory restart", ""},
		"memory after nothing":           {"memory", "", "after a backlog or after a restart"},
		"an unknown one":                 {"backlogs", "", `no scenario "backlogs"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wanted, err := scenarios(test.names)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("error is %v, want %q", err, test.fails)
			}
			names := slices.DeleteFunc(sorted(wanted), func(name string) bool { return !wanted[name] })
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("scenarios are %q, want %q", got, test.want)
			}
		})
	}
}
