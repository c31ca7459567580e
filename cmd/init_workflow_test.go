// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestTheWorkflowTypesCommandsThatWork runs the commands of the workflow that init writes, and holds that its steps are
// well-formed. The plan needs a cluster, so only its flags are read.
func TestTheWorkflowTypesCommandsThatWork(t *testing.T) {
	b := beginner(t)
	if code := b.execute(t.Context(), strings.Fields("init webapp --resource webapps.v1.example.com --github")); code != exitOK {
		t.Fatal(b.err.String())
	}
	t.Chdir("webapp")
	text, err := os.ReadFile(filepath.FromSlash(workflowFile))
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Jobs map[string]struct {
			If    string
			Steps []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^ *operator ([^|\n>]*)`)
	typed := map[string][]string{}
	for name, job := range page.Jobs {
		for _, step := range job.Steps {
			if (step.Uses == "") == (step.Run == "") {
				t.Errorf("a step of job %s is none: %+v", name, step)
			}
			for _, line := range commands.FindAllStringSubmatch(step.Run, -1) {
				typed[name] = append(typed[name], strings.TrimSpace(line[1]))
			}
		}
	}
	for _, args := range typed["check"] {
		if code := b.execute(t.Context(), strings.Fields(args)); code != exitOK {
			t.Errorf("operator %s: exit code %d: %s", args, code, b.err.String())
		}
	}
	if len(typed["check"]) != 2 || len(typed["plan"]) != 1 || page.Jobs["plan"].If == "" {
		t.Fatalf("the jobs type %q", typed)
	}
	command, args, err := b.root().Find(strings.Fields(typed["plan"][0]))
	if err == nil {
		err = command.ParseFlags(args)
	}
	if err != nil {
		t.Errorf("operator %s: %v", typed["plan"][0], err)
	}
}
