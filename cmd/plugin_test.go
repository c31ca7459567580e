// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
)

func TestTheNameOfAPlugin(t *testing.T) {
	tests := map[string]string{
		"/usr/local/bin/operator":             "",
		"kubectl-handwerk":                    "kubectl handwerk",
		"/usr/local/bin/kubectl-handwerk.exe": "kubectl handwerk",
		"kubectl-web-my_shop":                 "kubectl web my-shop",
		"kubectl-":                            "",
		"kubectl":                             "",
	}
	for path, want := range tests {
		if got := pluginOf(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// TestAPluginNamesItselfAsAPersonTypesIt holds that help, examples and errors of a plugin can be typed as they are.
func TestAPluginNamesItselfAsAPersonTypesIt(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"usage":    {[]string{"status", "--help"}, "  kubectl handwerk status [flags]"},
		"examples": {[]string{"status", "--help"}, "  kubectl handwerk status --operator webapp"},
		"errors":   {[]string{"status", "--nope"}, "see 'kubectl handwerk status --help'"},
		"the root": {[]string{"--help"}, "kubectl handwerk [command] --help"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.plugin = "kubectl handwerk"
			b.execute(t.Context(), test.args)
			text := b.out.String() + b.err.String()
			if !strings.Contains(text, test.want) || strings.Contains(text, "  operator ") {
				t.Errorf("want %q, and nothing that begins with operator:\n%s", test.want, text)
			}
		})
	}
}
