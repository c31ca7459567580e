// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// released is the version under which the test installs the checkout.
const released = "v0.0.1"

// installed installs the program operator as somebody does who has no clone: by go install, from a module proxy. The proxy is a folder
// with the checkout; the other modules come from the cache where they are there.
func installed(t *testing.T) (program string) {
	t.Helper()
	const module = "github.com/handwerk-dev/handwerk"
	proxy, bin := t.TempDir(), t.TempDir()
	versions := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(versions, 0o700); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"list": []byte(released + "\n"), released + ".info": []byte(`{"Version":"` + released + `"}`),
		released + ".mod": mod, released + ".zip": packed(t, "../..", module+"@"+released+"/"),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := strings.Split(goSays(t, nil, "env", "GOMODCACHE", "GOPROXY"), "\n")
	goSays(t, []string{
		"GOBIN=" + bin, "GOMODCACHE=" + t.TempDir(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GONOSUMDB=" + module,
		"GOPROXY=file://" + filepath.ToSlash(proxy) + ",file://" + filepath.ToSlash(filepath.Join(env[0], "cache", "download")) + "," + env[1],
	}, "install", "-ldflags=-s -w", module+"/cmd/operator@"+released)
	return filepath.Join(bin, "operator")
}

// packed returns a module as a proxy has it: a zip of the files below a folder, without those of other modules.
func packed(t *testing.T, root, prefix string) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		_, module := os.Stat(filepath.Join(path, "go.mod"))
		switch {
		case entry.IsDir() && (module == nil || entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to, err := archive.Create(prefix + filepath.ToSlash(name))
		if err == nil {
			_, err = to.Write(data)
		}
		return err
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// goSays runs the command go outside of a module, and returns what it prints.
func goSays(t *testing.T, env []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), env...)
	command.Stderr = t.Output()
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// TestAGoSampleIsPlayed plays a sample with functions in Go, as samples/README.md says, until Ctrl-C, which all processes of a terminal get.
func TestAGoSampleIsPlayed(t *testing.T) {
	t.Parallel()
	// go run compiles what nothing has compiled before. That may take longer than a line of a program that runs.
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", filepath.Join(t.TempDir(), "foobar"), "./samples/foobar")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	temporary := t.TempDir()
	program := plane.Operator(t, cluster.Launch{Program: "go", Args: []string{"run", "./samples/foobar", "play", "--examples"}, Env: []string{"TMPDIR=" + temporary}})
	program.Await(t, "handler succeeded")
	if out, err := exec.CommandContext(t.Context(), "kill", "-INT", "--", fmt.Sprint("-", program.PID())).CombinedOutput(); err != nil {
		t.Fatalf("kill: %v: %s", err, out)
	}
	program.Wait(t) // after Ctrl-C, go run fails whatever the program does
	if failed := program.With("exit status"); len(failed) > 0 {
		t.Errorf("the program has failed: %s", failed)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
