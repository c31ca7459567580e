// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// buildFlags are the flags of go build, as the Dockerfile has them. The image has no files of time zones, so the program has them.
var buildFlags = []string{"-trimpath", "-tags", "timetzdata", "-ldflags", "-s -w"}

// program is the program, built for a platform.
type program struct {
	platform *v1.Platform
	file     string
	info     *buildinfo.BuildInfo
}

// revision is the state of the source.
type revision struct {
	// commit is empty outside of a git repository.
	commit, version string
	created         time.Time
}

// build builds the programs, and writes the archive and the bill of materials.
func (o *options) build(ctx context.Context) error {
	platforms, err := o.parsePlatforms()
	if err != nil {
		return err
	}
	rev, err := o.revision(ctx)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	var programs []program
	for i, platform := range platforms {
		p, err := o.compile(ctx, platform, rev, filepath.Join(temporary, strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("building %s for %s: %w", o.main, platform, err)
		}
		programs = append(programs, p)
	}
	labels := o.labels(rev, programs[0].info)
	index, err := o.index(programs, labels, rev.created)
	if err != nil {
		return fmt.Errorf("making image: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(o.output), 0o755); err != nil {
		return err
	}
	if err := o.writeArchive(index, filepath.Join(temporary, "layout"), rev.created); err != nil {
		return fmt.Errorf("writing %s: %w", o.output, err)
	}
	if err := o.writeSBOM(index, programs, labels, rev.created); err != nil {
		return fmt.Errorf("writing %s: %w", o.sbom, err)
	}
	return nil
}

func (o *options) parsePlatforms() ([]*v1.Platform, error) {
	var platforms []*v1.Platform
	for text := range strings.SplitSeq(o.platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS != "linux" || platform.Architecture == "" || platform.Variant != "" {
			return nil, fmt.Errorf("platform %q is not of the form linux/ARCHITECTURE", text)
		}
		platforms = append(platforms, platform)
	}
	return platforms, nil
}

// compile builds the program. Environment variables that change the output have fixed values. GOFLAGS must not be
// empty, because go would then use that of go env -w.
func (o *options) compile(ctx context.Context, platform *v1.Platform, rev revision, dir string) (program, error) {
	p := program{platform: platform, file: filepath.Join(dir, path.Base(programPath))}
	args := append([]string{"build", "-buildvcs=" + strconv.FormatBool(rev.commit != ""), "-o", p.file}, buildFlags...)
	build := exec.CommandContext(ctx, "go", append(args, o.main)...)
	build.Dir = o.dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture,
		"GOFLAGS=-trimpath", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	build.Stderr = os.Stderr
	err := build.Run()
	if err != nil {
		return p, err
	}
	p.info, err = buildinfo.ReadFile(p.file)
	return p, err
}

// revision asks git. SOURCE_DATE_EPOCH in the environment replaces the time of the commit. Without both, the time
// is that of the epoch. A changed or untracked file makes the version dirty, as for go build. The number of digits
// of a commit depends neither on the clone nor on a person's settings.
func (o *options) revision(ctx context.Context) (revision, error) {
	rev := revision{version: "devel", created: time.Unix(0, 0).UTC()}
	if out, err := o.git(ctx, "-c", "log.showSignature=false", "log", "-1", "--format=%H %ct"); err == nil {
		commit, seconds, _ := strings.Cut(out, " ")
		rev.commit = commit
		if rev.created, err = epoch(seconds); err != nil {
			return rev, fmt.Errorf("reading time of commit: %w", err)
		}
		if rev.version, err = o.git(ctx, "describe", "--tags", "--always", "--abbrev=12"); err != nil {
			return rev, fmt.Errorf("describing commit: %w", err)
		}
		changes, err := o.git(ctx, "status", "--porcelain")
		if err != nil {
			return rev, fmt.Errorf("looking for changes: %w", err)
		}
		if changes != "" {
			rev.version += "-dirty"
		}
	}
	if o.version != "" {
		rev.version = o.version
	}
	if seconds := os.Getenv("SOURCE_DATE_EPOCH"); seconds != "" {
		created, err := epoch(seconds)
		if err != nil {
			return rev, fmt.Errorf("reading SOURCE_DATE_EPOCH: %w", err)
		}
		rev.created = created
	}
	return rev, nil
}

func epoch(seconds string) (time.Time, error) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	return time.Unix(n, 0).UTC(), err
}

func (o *options) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", args...)
	git.Dir = o.dir
	out, err := git.Output()
	return strings.TrimSpace(string(out)), err
}

// labels returns the image's labels, by the keys of the OCI image specification.
func (o *options) labels(rev revision, info *buildinfo.BuildInfo) map[string]string {
	labels := map[string]string{
		"title": o.title, "version": rev.version, "revision": rev.commit, "licenses": o.licenses, "source": o.source,
		"created": rev.created.Format(time.RFC3339),
	}
	if o.title == "" {
		labels["title"] = path.Base(info.Path)
	}
	if elements := strings.SplitN(info.Main.Path, "/", 4); o.source == "" && len(elements) >= 3 && (elements[0] == "github.com" || elements[0] == "gitlab.com") {
		labels["source"] = "https://" + strings.Join(elements[:3], "/")
	}
	prefixed := map[string]string{}
	for key, value := range labels {
		if value != "" {
			prefixed["org.opencontainers.image."+key] = value
		}
	}
	return prefixed
}
