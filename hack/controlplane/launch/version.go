// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
)

// modules says in which Go module a built-in component is.
var modules = map[string]string{
	Etcd:              "go.etcd.io/etcd/server/v3",
	APIServer:         "k8s.io/kubernetes",
	ControllerManager: "k8s.io/kubernetes",
	Scheduler:         "k8s.io/kubernetes",
	Kwok:              "sigs.k8s.io/kwok",
}

// PrintVersions writes a line for each component: its name, its version and where it comes from.
func PrintVersions(ctx context.Context, programs Programs, out io.Writer) error {
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok} {
		command, err := programs.Find(name)
		version, origin := "-", "not in this build"
		switch {
		case err == nil && len(command) == 1:
			version, origin = programVersion(ctx, command[0]), command[0]
		case err == nil:
			version, origin = moduleVersion(modules[name]), "built in"
		case programs.Assets != "":
			origin = "not in " + programs.Assets
		}
		if _, err := fmt.Fprintf(out, "%-24s %-12s %s\n", name, version, origin); err != nil {
			return err
		}
	}
	return nil
}

// moduleVersion reads a version from what the Go linker wrote into this program.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	at := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path })
	if at < 0 {
		return "unknown"
	}
	return info.Deps[at].Version
}

// programVersion asks a program: the last word of the first line, as in "Kubernetes v1.37.1".
func programVersion(ctx context.Context, path string) string {
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := bytes.Cut(text, []byte("\n"))
	words := bytes.Fields(line)
	if err != nil || len(words) == 0 {
		return "unknown"
	}
	return string(words[len(words)-1])
}
