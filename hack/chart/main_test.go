// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	repository = "../.."
	chartDir   = repository + "/deploy/chart"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	// operator is the path of the operator's program, which TestMain builds.
	operator string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "handwerk-chart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	operator = filepath.Join(dir, "operator")
	build := exec.Command("go", "build", "-o", operator, "./cmd/operator")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building operator: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// prints runs a command of the operator, and returns what it prints.
func prints(t *testing.T, args ...string) string {
	t.Helper()
	var printed, failed strings.Builder
	c := exec.CommandContext(t.Context(), operator, args...)
	c.Stdout, c.Stderr = &printed, &failed
	if err := c.Run(); err != nil {
		t.Fatalf("operator %s: %v\n%s", strings.Join(args, " "), err, failed.String())
	}
	return printed.String()
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parse reads a map from YAML.
func parse(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return out
}

// valuesOf are the values with which a configuration is released: what operator rbac and operator crd print, and the files.
func valuesOf(t *testing.T, config string) map[string]any {
	t.Helper()
	values := parse(t, prints(t, "rbac", "--config", config, "-o", "helm"))
	values["config"] = map[string]any{filepath.Base(config): read(t, config)}
	return values
}
