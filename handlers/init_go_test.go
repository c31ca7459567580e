// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/handlers"
)

var beginning = regexp.MustCompile("(?s)\n## The first ten minutes\n.*?```sh\n(.*?)```.*?```text\n(.*?)```")

// TestTheFirstTenMinutesInGo runs the commands with which docs/go.md begins, those that need no cluster, and what they
// write is built without the network.
func TestTheFirstTenMinutesInGo(t *testing.T) {
	page, err := os.ReadFile("../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	found := beginning.FindStringSubmatch(string(page))
	if found == nil {
		t.Fatal("docs/go.md does not begin with commands and what they print")
	}
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	ran := 0
	for line := range strings.Lines(found[1]) {
		line, _, _ = strings.Cut(strings.ReplaceAll(line, "../handwerk", checkout), "#")
		line = strings.TrimSpace(line)
		switch args := strings.Fields(line); {
		case args[0] == "operator":
			mustPrint(t, args[1:], found[2])
		case args[0] == "cd":
			t.Chdir(args[1])
			run(t, "go", "vet", ".")
			run(t, "go", "build", "-o", "program", ".")
		case line == "go test .":
			if out := run(t, "go", "test", "-v", "."); !strings.Contains(out, "--- PASS: ") || strings.Contains(out, `"msg"=`) {
				t.Errorf("want a test that passes, and no log:\n%s", out)
			}
		case line == "go run . crd":
			isCRD(t, run(t, "./program", "crd"))
		case args[0] == "kubectl", line == "go run . run --install-crds":
			continue // it needs a cluster
		default:
			t.Errorf("nothing is known of %q", line)
		}
		ran++
	}
	if ran != 4 {
		t.Errorf("%d commands ran", ran)
	}
	if out := run(t, "./program", "test", "."); !strings.HasPrefix(out, "ok    operator_test.yaml  1 case  ") {
		t.Errorf("test says %s", out)
	}
	if out := run(t, "./program", "validate"); !strings.Contains(out, ": ok") {
		t.Errorf("validate says %s", out)
	}
}

// mustPrint runs a command line of operator, whose output begins with the text that the page shows.
func mustPrint(t *testing.T, args []string, want string) {
	t.Helper()
	var out, errs strings.Builder
	code := cmd.Run(t.Context(), args, cmd.Streams{Out: &out, Err: &errs}, handlers.Standard())
	if code != 0 || !strings.HasPrefix(out.String(), want) {
		t.Fatalf("exit code %d, and it says\n%s%s\nwant\n%s", code, out.String(), errs.String(), want)
	}
}

// run runs a program that has the module cache and no network, and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// isCRD holds a CRD against what the operator and its example say.
func isCRD(t *testing.T, text string) {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	kind, s, err := crd.Objects(tree)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if want := (schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "WebApp"}); kind != want {
		t.Errorf("the kind is %v", kind)
	}
	spec := s.Properties["spec"]
	replicas := spec.Properties["replicas"]
	if got := fmt.Sprint(spec.Required, replicas.Default, *replicas.Maximum); got != "[image] 1 50" {
		t.Errorf("what is required, and the default and the maximum of replicas: %s", got)
	}
	var example struct {
		APIVersion, Kind string
		Spec             map[string]any
	}
	data, err := os.ReadFile("example.yaml")
	if err == nil {
		err = yaml.Unmarshal(data, &example)
	}
	for field := range example.Spec {
		if _, known := spec.Properties[field]; !known {
			t.Errorf("the example has %s, which the CRD has not", field)
		}
	}
	if err != nil || example.APIVersion != kind.GroupVersion().String() || example.Kind != kind.Kind || example.Spec["image"] == nil {
		t.Errorf("the example is %+v (%v)", example, err)
	}
}
