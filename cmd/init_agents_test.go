// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// askable matches the commands of AGENTS.md that need neither a cluster nor a person.
var askable = regexp.MustCompile("(?m)(?:^\\$ |`)operator ((?:validate|explain) [^`#\n]*)")

// TestAgentsAreToldCommandsThatWork runs the commands of the AGENTS.md that init writes, in the folder of the operator.
func TestAgentsAreToldCommandsThatWork(t *testing.T) {
	b := beginner(t)
	if code := b.execute(t.Context(), strings.Fields("init webapp --resource webapps.v1.example.com")); code != exitOK {
		t.Fatal(b.err.String())
	}
	t.Chdir("webapp")
	page, err := os.ReadFile("AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := askable.FindAllStringSubmatch(string(page), -1)
	if len(commands) != 3 {
		t.Errorf("AGENTS.md has the commands %q", commands)
	}
	for _, command := range commands {
		if code := b.execute(t.Context(), strings.Fields(command[1])); code != exitOK {
			t.Errorf("operator %s: %s", command[1], b.err.String())
		}
	}
	if !strings.Contains(string(page), "$ operator test . ") {
		t.Error("AGENTS.md does not say how the cases are run")
	}
	cases.Run(t, ".", handlers.Standard())
	if lines := strings.Count(string(page), "\n"); lines > 30 {
		t.Errorf("AGENTS.md has %d lines", lines)
	}
}
