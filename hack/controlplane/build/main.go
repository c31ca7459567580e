// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command build compiles the controlplane program and shows how far it is: the first time that is
// most of Kubernetes, which takes minutes; afterwards Go's build cache has it.
//
//	go run ./build OUT
//
// It runs in the folder of the module. Where KUBEBUILDER_ASSETS is set the programs in that folder
// are going to be used, so the big components are left out and the build takes seconds.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: go run ./build OUT")
		os.Exit(2)
	}
	if err := build(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "building controlplane: %v\n", err)
		os.Exit(1)
	}
}

// build compiles the program to the file out.
func build(out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	version, err := output("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	flags := []string{"-trimpath", "-tags=" + tags()}
	args := append([]string{"build", "-v", "-buildvcs=false", "-ldflags=" + linkerFlags(version), "-o", out}, append(flags, ".")...)

	start := time.Now()
	before, _ := os.Stat(out)
	shown := newProgress(os.Stdout, terminal(os.Stdout), func() (int, error) { return count(flags) })
	cmd := command("go", args...)
	// What the go command reports goes to its standard error, packages and mistakes alike.
	cmd.Stdout, cmd.Stderr = os.Stdout, shown
	err = cmd.Run()
	shown.finish()
	if err != nil {
		return fmt.Errorf("running go build: %w", err)
	}
	// The go command touches a program that is up to date, and replaces one that is not.
	if after, _ := os.Stat(out); os.SameFile(before, after) {
		fmt.Printf("%s is up to date\n", out)
		return nil
	}
	fmt.Printf("built %s in %s\n", out, time.Since(start).Round(time.Second))
	return nil
}

// tags are those of the Kubernetes release build, or the one that leaves Kubernetes out.
func tags() string {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return "assets"
	}
	return "notest,grpcnotrace"
}

// linkerFlags make the API server and the clients tell their version, as a release does.
func linkerFlags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			pkg, version, major, minor)
	}
	return flags
}

// count returns how many packages the program consists of.
func count(flags []string) (int, error) {
	list, err := output("go", append(append([]string{"list", "-deps"}, flags...), ".")...)
	return len(strings.Fields(list)), err
}

func output(name string, args ...string) (string, error) {
	var text, mistakes bytes.Buffer
	cmd := command(name, args...)
	cmd.Stdout, cmd.Stderr = &text, &mistakes
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", name, args[0], err, mistakes.String())
	}
	return strings.TrimSpace(text.String()), nil
}

// command runs the same toolchain in the same way everywhere: without a C compiler, and whatever
// workspace is around.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd
}

func terminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
