// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestALogSaysHowATestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		log  []string
		want result
	}{
		"it passes":               {[]string{"core.sh:1: Successful get", "@@END"}, result{passes: true}},
		"an assertion fails":      {[]string{"core.sh:2: FAIL!", "Get pods", "  Expected: a", "@@FAILED test.sh:90", "@@FAILED core.sh:2", "@@END"}, result{why: "core.sh:2: core.sh:2: FAIL! Get pods Expected: a"}},
		"two commands fail":       {[]string{"Error from server: no", "@@FAILED core.sh:2", "error: x", "@@FAILED core.sh:3", "@@END"}, result{why: "core.sh:2 and 1 more: Error from server: no"}},
		"it ends in the middle":   {[]string{"@@FAILED core.sh:2"}, result{why: "did not come to its end, core.sh:2"}},
		"helpers fail by the way": {[]string{"@@FAILED test.sh:9", "@@END"}, result{passes: true}},
	} {
		if got := resultOf(strings.Join(c.log, "\n") + "\n"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
