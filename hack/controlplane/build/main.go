// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command build compiles the programs controlplane and kubectl into a folder and shows how far it is:
// the first time that is most of Kubernetes, which takes minutes; afterwards Go's build cache has it.
//
//	go run ./build DIR
//
// It runs in the folder of the module. Where KUBEBUILDER_ASSETS is set the programs in that folder
// are going to be used, kubectl too, so the big components are left out and the build takes seconds.
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
		fmt.Fprintln(os.Stderr, "usage: go run ./build DIR")
		os.Exit(2)
	}
	if err := build(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "building controlplane: %v\n", err)
		os.Exit(1)
	}
}

// kubectl is the package of kubectl's program. The go command names a program by its package.
const kubectl = "k8s.io/kubernetes/cmd/kubectl"

// packages returns the packages of the programs.
func packages() []string {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return []string{"."}
	}
	return []string{".", kubectl}
}

// build compiles the programs into a folder.
func build(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making folder: %w", err)
	}
	version, err := output("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	flags := append([]string{"-trimpath", "-tags=" + tags()}, packages()...)
	args := append([]string{"build", "-v", "-buildvcs=false", "-ldflags=" + linkerFlags(version), "-o", dir + "/"}, flags...)

	start, before := time.Now(), programs(dir)
	shown := newProgress(os.Stdout, terminal(os.Stdout), func() (int, error) { return count(flags) })
	cmd := command("go", args...)
	// What the go command reports goes to its standard error, packages and mistakes alike.
	cmd.Stdout, cmd.Stderr = os.Stdout, shown
	err = cmd.Run()
	shown.finish()
	if err != nil {
		return fmt.Errorf("running go build: %w", err)
	}
	for i, after := range programs(dir) {
		// The go command only touches a program that is up to date, and replaces one that is not.
		if os.SameFile(before[i], after) {
			fmt.Printf("%s is up to date\n", filepath.Join(dir, after.Name()))
			continue
		}
		fmt.Printf("built %s in %s\n", filepath.Join(dir, after.Name()), time.Since(start).Round(time.Second))
	}
	return nil
}

// programs returns the files of the programs in a folder; nil for missing ones.
func programs(dir string) (out []os.FileInfo) {
	for _, name := range []string{"controlplane", "kubectl"}[:len(packages())] {
		file, _ := os.Stat(filepath.Join(dir, name)) // there is none before the first build
		out = append(out, file)
	}
	return out
}

// tags returns the build tags of the Kubernetes release, or the tag that leaves Kubernetes out.
func tags() string {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return "assets"
	}
	return "notest,grpcnotrace"
}

// linkerFlags set the versions of the API server, kubectl and the clients, as in a release.
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

// count returns how many packages the programs consist of.
func count(flags []string) (int, error) {
	list, err := output("go", append([]string{"list", "-deps"}, flags...)...)
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

// command runs the same toolchain in the same way everywhere: without a C compiler, and without a workspace.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd
}

func terminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
