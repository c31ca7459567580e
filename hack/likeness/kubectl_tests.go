// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// kubernetesVersion is the version of the tests. It is that of hack/controlplane.
const kubernetesVersion = "v1.37.1"

// slowest is how long a test may take before it counts as failed.
const slowest = 7 * time.Minute

//go:embed kubectl.sh
var driver []byte

// commandTests are the command tests in a folder of their own.
type commandTests struct {
	dir string
	// functions are the names of the tests, in the order in which upstream runs them.
	functions []string
}

// commandTests copies the files of the tests from the Go module cache, and prepares them.
func (s Servers) commandTests(ctx context.Context) (commandTests, error) {
	t := commandTests{dir: filepath.Join(s.Dir, "kubernetes")}
	source, err := download(ctx, "k8s.io/kubernetes@"+kubernetesVersion)
	if err != nil {
		return t, err
	}
	for _, dir := range []string{"hack/lib", "hack/testdata", "test/cmd", "test/fixtures", "test/e2e/testing-manifests", "third_party"} {
		if err := t.copy(source, dir); err != nil {
			return t, fmt.Errorf("copying %s: %w", dir, err)
		}
	}
	script, err := os.ReadFile(filepath.Join(t.dir, "test/cmd/legacy-script.sh"))
	if err != nil {
		return t, err
	}
	if t.functions = functionsIn(script); len(t.functions) == 0 {
		return t, errors.New("reading test/cmd/legacy-script.sh: it runs no tests")
	}
	return t, t.complete(s, script)
}

// download brings a module into the Go module cache, and returns its folder.
func download(ctx context.Context, module string) (string, error) {
	get := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	get.Stderr = os.Stderr
	data, err := get.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(data, &answer); err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	return answer.Dir, nil
}

// copy copies a folder. Scripts get the marks of the driver in place of errexit, and the token of a server in place of their own.
func (t commandTests) copy(source, dir string) error {
	marks := strings.NewReplacer(
		"set -o errexit", "noteFailures", "set +o errexit", "ignoreFailures", "set -o nounset", ":",
		"'--token=admin-token'", `"--token=$TOKEN"`, "'Authorization: Bearer admin-token'", `"Authorization: Bearer $TOKEN"`,
		"admin-token", "$TOKEN", "/tmp/tmp-", "$HOME/tmp-", // tests run at once
	)
	return filepath.WalkDir(filepath.Join(source, dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		target := filepath.Join(t.dir, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(relative, "test/cmd/") && entry.Name() != "legacy-script.sh" {
			data = []byte(marks.Replace(string(data)))
		}
		if strings.HasPrefix(relative, "test/cmd/") || strings.HasPrefix(relative, "hack/testdata/service") {
			data = bytes.ReplaceAll(data, []byte("10.0.0."), []byte("10.96.0.")) // the range of the servers' Services
		}
		return os.WriteFile(target, data, 0o755) // a module has no modes, and plugins have to be executable
	})
}

// functionsIn returns the tests that the script of upstream runs.
func functionsIn(script []byte) (out []string) {
	for _, match := range regexp.MustCompile(`(?m)^\s+record_command (run_\w+)$`).FindAllSubmatch(script, -1) {
		out = append(out, string(match[1]))
	}
	return out
}

// complete adds files of the driver to those of the tests.
func (t commandTests) complete(s Servers, script []byte) error {
	variables := regexp.MustCompile(`(?m)^  export [a-z_0-9]+=.*$`).FindAll(script, -1)
	var text strings.Builder
	for _, line := range variables {
		fmt.Fprintf(&text, "%s\n", line)
	}
	bin := filepath.Join(t.dir, "_output/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(s.Kubectl(), filepath.Join(bin, "kubectl")); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"kubectl.sh": string(driver), "variables.sh": text.String(),
		// The node of upstream's own setup.
		"node.json": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"127.0.0.1","annotations":{"save-managers":"true"}},"status":{"capacity":{"memory":"1Gi"}}}`,
	} {
		if err := os.WriteFile(filepath.Join(t.dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs a test against a server. Its log is next to the folder of the tests.
func (t commandTests) run(ctx context.Context, v *Server, name string) (result, error) {
	home, err := os.MkdirTemp(filepath.Dir(t.dir), "home-")
	if err != nil {
		return result{}, err
	}
	if err := writeKubeconfig(filepath.Join(home, ".kube/config"), v); err != nil {
		return result{}, err
	}
	at, err := url.Parse(v.URL)
	if err != nil {
		return result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	c := exec.CommandContext(limited, "bash", "kubectl.sh", name)
	c.Dir, c.WaitDelay = t.dir, time.Second // a proxy that a test has started may hold the pipe
	c.Env = append(os.Environ(), "HOME="+home, "SERVER="+v.URL, "SECURE_API_PORT="+at.Port(), "TOKEN="+v.Token, "KUBECONFIG=",
		"PATH="+filepath.Join(t.dir, "_output/bin")+":"+os.Getenv("PATH"))
	log, err := c.CombinedOutput()
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	file := fmt.Sprintf("%s.%s.log", name, filepath.Base(filepath.Dir(v.Kubeconfig)))
	if err := os.WriteFile(filepath.Join(filepath.Dir(t.dir), file), log, 0o644); err != nil {
		return result{}, err
	}
	return resultOf(string(log)), nil // the exit code is not of the test: it goes on after a failure
}

// writeKubeconfig writes the kubeconfig that the tests expect, and change.
func writeKubeconfig(file string, v *Server) error {
	content, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "local", "cluster": map[string]any{"server": v.URL, "insecure-skip-tls-verify": true}}},
		"users":    []any{map[string]any{"name": "test-admin", "user": map[string]any{"token": v.Token}}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "local", "user": "test-admin"}}},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}
