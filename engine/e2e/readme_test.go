// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// readmeCommands are the commands that README.md has for a user to type, in order and without comments.
func readmeCommands(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), " #")
			for one := range strings.SplitSeq(strings.TrimSpace(command), " && ") {
				out = append(out, one)
			}
		}
	}
	if len(out) < 12 {
		t.Fatalf("README.md has %d commands: %q", len(out), out)
	}
	return out
}

// TestReadme types the commands of README.md, against the control plane: what is there to be typed works
// in that order, and the example becomes what it should.
func TestReadme(t *testing.T) {
	r := &reader{dir: t.TempDir(), ns: plane.Namespace(t)}
	for _, command := range readmeCommands(t) {
		r.does(t, command)
	}
	if r.running == nil {
		t.Fatal("README.md runs no operator")
	}
	plane.Objects("deployments.v1.apps", r.ns).Await(t, r.made, "becoming available", func(o *unstructured.Unstructured) bool { return available(o) > 0 })
	r.running()
	plane.Objects(crds, "").Delete(t, "webapps.example.com")
}

// reader is somebody who reads README.md.
type reader struct {
	dir, ns string
	// made is the name of the object that was made.
	made string
	// running ends the operator.
	running func()
}

// does does what a line says.
func (r *reader) does(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	switch words[0] {
	case "operator":
		args := words[1:]
		for i, arg := range args {
			if i > 0 && (args[i-1] == "--config" && arg == "webapp" || args[i-1] == "-o") {
				args[i] = filepath.Join(r.dir, arg)
			}
		}
		r.types(t, command, args)
	case "make":
		makefile, err := os.ReadFile("../../Makefile")
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range words[1:] {
			if strings.Contains(target, "=") {
				continue // a variable
			}
			if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
				t.Errorf("%s: there is no such target", command)
			}
		}
	case "kubectl":
		r.applies(t, command, words)
	case "git", "cd", "export": // it is done already
	default:
		t.Errorf("%s: the test does not know it", command)
	}
}

// types runs a command of the operator.
func (r *reader) types(t *testing.T, command string, args []string) {
	t.Helper()
	var printed bytes.Buffer
	streams := cmd.Streams{Out: &printed, Err: &printed, Env: []string{"KUBECONFIG=" + cluster.WriteKubeconfig(t, plane.Config())}}
	switch args[0] {
	case "play":
		r.plays(t, command, args)
		return
	case "run":
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		args = append(args, "--health-probe-bind-address=0", "--metrics-bind-address=0", "--debug-bind-address=0", "--namespace="+r.ns)
		go func() { ended <- cmd.Run(ctx, args, streams, handlers.Standard()) }()
		r.running = func() {
			cancel()
			if code := <-ended; code != 0 {
				t.Errorf("%s: exit code %d\n%s", command, code, printed.String())
			}
		}
		return
	case "init":
		args = append(args, "--dir="+filepath.Join(r.dir, args[1]))
	}
	if code := cmd.Run(t.Context(), args, streams, handlers.Standard()); code != 0 || strings.Contains(printed.String(), "warning") {
		t.Errorf("%s: exit code %d\n%s", command, code, printed.String())
	}
}

// plays runs operator play until the example is there.
func (r *reader) plays(t *testing.T, command string, args []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := &until{text: "webapps/example", then: cancel}
	if code := cmd.Run(ctx, args, cmd.Streams{Out: lines, Err: lines}, handlers.Standard()); code != 0 || !strings.Contains(lines.all.String(), lines.text) {
		t.Errorf("%s: exit code %d\n%s", command, code, lines.all.String())
	}
}

// until is a writer that calls a function when a text was written.
type until struct {
	all  bytes.Buffer
	text string
	then func()
}

// Write takes a part.
func (u *until) Write(data []byte) (int, error) {
	if strings.Contains(string(data), u.text) {
		u.then()
	}
	return u.all.Write(data)
}

// applies does what kubectl apply does with a file that init wrote; a folder that bundle wrote has to be there.
func (r *reader) applies(t *testing.T, command string, words []string) {
	t.Helper()
	path := words[len(words)-1]
	if slices.Contains(words, "-k") {
		if _, err := os.Stat(filepath.Join(r.dir, path, "kustomization.yaml")); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return
	}
	text, err := os.ReadFile(filepath.Join(r.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	example := parse(t, string(text))
	r.made = example.GetName()
	plane.AwaitServed(t, plane.Objects(crds, "").Await(t, "webapps.example.com", "being installed", func(*unstructured.Unstructured) bool { return true }))
	plane.Objects("webapps.v1alpha1.example.com", r.ns).Create(t, example)
}
