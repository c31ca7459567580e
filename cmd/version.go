// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// version describes how this program was built.
type version struct {
	// Version is the version of the main module, "devel" if it was not built from a release.
	Version string `json:"version"`
	// Handwerk is the version of the engine; it differs from Version in a user's own program.
	Handwerk string `json:"handwerk"`
	Commit   string `json:"commit,omitempty"`
	// Time is the time of the commit. Modified: the source had uncommitted changes.
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	ClientGo string `json:"clientGo"`
	Platform string `json:"platform"`
}

const (
	ownModule      = "github.com/handwerk-dev/handwerk"
	clientGoModule = "k8s.io/client-go"
)

func (p *program) versionCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print how this program was built",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if output == "json" {
				return writeJSON(c.OutOrStdout(), selfVersion())
			}
			return selfVersion().write(c.OutOrStdout())
		},
	}
	addOutput(c.Flags(), &output)
	completeChoices(c)
	return c
}

// selfVersion returns the version of this program.
func selfVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionFrom(info)
}

func versionFrom(info *debug.BuildInfo) version {
	v := version{Version: info.Main.Version, Go: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "devel"
	}
	v.Handwerk, v.ClientGo = "unknown", "unknown"
	if info.Main.Path == ownModule {
		v.Handwerk = v.Version
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = &debug.Module{Path: dep.Path, Version: dep.Replace.Version}
		}
		switch dep.Path {
		case ownModule:
			v.Handwerk = dep.Version
		case clientGoModule:
			v.ClientGo = dep.Version
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// write writes a line for each known property.
func (v version) write(w io.Writer) error {
	commit := v.Commit
	if v.Modified {
		commit += ", modified"
	}
	if v.Time != "" {
		commit += " (" + v.Time + ")"
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for _, row := range [][2]string{
		{"version", v.Version}, {"handwerk", v.Handwerk}, {"commit", commit},
		{"go", v.Go}, {"client-go", v.ClientGo}, {"platform", v.Platform},
	} {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
		}
	}
	return table.Flush()
}
