// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

// versions names the programs that are measured, and the machine.
func (p plan) versions(ctx context.Context, plane *plane) (string, error) {
	client, err := wire.New(plane.kubeconfig, "bench-loader", 1)
	if err != nil {
		return "", err
	}
	data, err := client.Get(ctx, "/version")
	if err != nil {
		return "", err
	}
	var server struct{ GitVersion string }
	if err := json.Unmarshal(data, &server); err != nil {
		return "", fmt.Errorf("reading the server's version: %w", err)
	}
	modules, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/controller-runtime", "k8s.io/client-go").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the versions of modules: %w", err)
	}
	version := strings.Fields(string(modules))
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("a tree without git")
	}
	return fmt.Sprintf("Handwerk at %s, controller-runtime %s, client-go %s, API server %s, %s, %s",
		strings.TrimSpace(string(commit)), version[0], version[1], server.GitVersion, runtime.Version(), machine()), nil
}

// machine describes this one.
func machine() string {
	text := fmt.Sprintf("%d cores", runtime.NumCPU())
	for _, from := range [][2]string{{"/proc/cpuinfo", "model name"}, {"/proc/meminfo", "MemTotal"}} {
		data, err := os.ReadFile(from[0])
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(line, ":")
			if strings.TrimSpace(name) != from[1] {
				continue
			}
			var kilobytes int
			if _, err := fmt.Sscanf(strings.TrimSpace(value), "%d kB", &kilobytes); err == nil {
				value = fmt.Sprintf("%d GiB", (kilobytes+1<<19)>>20)
			}
			text += ", " + strings.TrimSpace(value)
			break
		}
	}
	return text
}

// insert puts a text into a file, between the marks of its part.
func insert(file, part, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- bench "+part+" -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("putting the tables into %s: it has no lines %q and %q", file, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}
