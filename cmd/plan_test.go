// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"strings"
	"testing"
)

// TestPlanExitsWithWhatItFinds holds the exit codes of plan, which scripts go by.
func TestPlanExitsWithWhatItFinds(t *testing.T) {
	const dir = "testdata/plan/"
	const sites = "~ changed 2 Sites: shop/blog, shop/docs\n    ~ status.image: nginx → mirror/nginx\n"
	for name, tt := range map[string]struct {
		args string
		code int
		want string
	}{
		"no change":                 {"--config " + dir + "operator.yaml --objects " + dir + "dump.yaml", exitOK, "no change to 2 objects"},
		"changes":                   {"--config " + dir + "changed --objects " + dir + "dump.yaml", exitChanges, sites},
		"changes, from the input":   {"--config " + dir + "changed --objects -", exitChanges, sites},
		"another configuration":     {"--config " + dir + "changed --against " + dir + "operator.yaml --objects " + dir + "dump.yaml", exitChanges, sites},
		"the same configuration":    {"--config " + dir + "changed --against " + dir + "changed --objects " + dir + "dump.yaml", exitOK, "no change"},
		"a file that is not there":  {"--config " + dir + "changed --objects none.yaml", exitFailed, "none.yaml"},
		"a fault":                   {"--config testdata/faulty.yaml --objects " + dir + "dump.yaml", exitFailed, "faulty.yaml"},
		"no configuration":          {"--objects " + dir + "dump.yaml", exitFailed, "--config is required"},
		"an unknown flag":           {"--frobnicate", exitFailed, "unknown flag"},
		"a cluster and its objects": {"--config " + dir + "changed --objects - --context a", exitFailed, "--objects takes the place"},
	} {
		t.Run(name, func(t *testing.T) {
			dump, err := os.Open(dir + "dump.yaml")
			if err != nil {
				t.Fatal(err)
			}
			defer dump.Close()
			var out, said strings.Builder
			code := greeter().Run(t.Context(), append([]string{"plan"}, strings.Fields(tt.args)...), Streams{In: dump, Out: &out, Err: &said, Env: os.Environ()})
			if text := out.String() + said.String(); code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("exit %d, want %d, and %q in:\n%s", code, tt.code, tt.want, text)
			}
		})
	}
}
