// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// version describes how this program was built.
type version struct {
	// Version is the version of the main module, "devel" if it was not built from a release. Module is its path.
	Version string `json:"version"`
	Module  string `json:"module,omitempty"`
	// Handwerk is the version of the engine; it differs from Version in a user's own program.
	Handwerk string `json:"handwerk"`
	Commit   string `json:"commit,omitempty"`
	// Time is the time of the commit. Modified: the source had uncommitted changes.
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// BuiltBy names the builder, as in "release workflow"; empty if that is not known.
	BuiltBy  string `json:"builtBy,omitempty"`
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
			v := selfVersion()
			v.BuiltBy = cmp.Or(p.builtBy, v.BuiltBy)
			if output == "json" {
				return writeJSON(c.OutOrStdout(), v)
			}
			return v.write(c.OutOrStdout())
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
	v := version{Version: info.Main.Version, Module: info.Main.Path, Go: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "devel"
	}
	if info.Main.Sum != "" {
		v.BuiltBy = "go install" // a module that go has downloaded has a checksum
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

// releaseVersion matches the versions of releases. Versions of other commits do not match.
var releaseVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// The images of the program: where releases are, and what make image builds.
const (
	releasedImage = "ghcr.io/handwerk-dev/handwerk"
	localImage    = "handwerk:dev"
)

// image returns the image of a released version of this program. Other programs and versions have the local one.
func (v version) image() string {
	if v.Module == ownModule && releaseVersion.MatchString(v.Version) {
		return releasedImage + ":" + v.Version
	}
	return localImage
}

// defaultImage returns the image of this program.
func (p *program) defaultImage() string { return cmp.Or(p.image, selfVersion().image()) }

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
		{"version", v.Version}, {"handwerk", v.Handwerk}, {"module", v.Module}, {"commit", commit}, {"built by", v.BuiltBy},
		{"go", v.Go}, {"client-go", v.ClientGo}, {"platform", v.Platform},
	} {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
		}
	}
	return table.Flush()
}
