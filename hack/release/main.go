// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes the files of a release, without a network: the programs, the image as an OCI archive with its bill
// of materials, the chart, the manifest for krew, and the checksums. A workflow publishes and signs them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// options are the options of the command line.
type options struct {
	// dir is the checkout, and output the folder of the files.
	dir, output string
	// main is the program's package in the checkout.
	main string
	// version is the version with its v.
	version string
	// image is the image without a tag, url the place of the files of all releases.
	image, url string
	// platforms are those of the programs, imagePlatforms those of the image. Both are separated by commas.
	platforms, imagePlatforms string
	// builtBy names the builder, for operator version.
	builtBy string
}

// versionShape is a version as Go and Helm want it.
var versionShape = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", ".", "the checkout")
	flag.StringVar(&o.output, "o", filepath.Join("bin", "release"), "the folder to write; it must be empty or absent")
	flag.StringVar(&o.main, "main", "./cmd/operator", "the program's package")
	flag.StringVar(&o.version, "version", "v0.0.0-dev", "the version")
	flag.StringVar(&o.image, "image", "ghcr.io/handwerk-dev/handwerk", "the image without a tag")
	flag.StringVar(&o.url, "url", "https://github.com/handwerk-dev/handwerk/releases/download", "the place of the files of all releases")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "the platforms of the programs")
	flag.StringVar(&o.imagePlatforms, "image-platforms", "linux/amd64,linux/arm64", "the platforms of the image")
	flag.StringVar(&o.builtBy, "built-by", "hack/release", "the builder, for operator version")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.release(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release makes all files. The image comes first, because the programs and the chart name it by its digest.
func (o *options) release(ctx context.Context) error {
	if !versionShape.MatchString(o.version) {
		return fmt.Errorf("invalid version %q: want one like v1.2.3", o.version)
	}
	if entries, err := os.ReadDir(o.output); err == nil && len(entries) > 0 {
		return fmt.Errorf("writing into %s: the folder is not empty", o.output)
	}
	output, err := filepath.Abs(o.output)
	if err != nil {
		return err
	}
	o.output = output
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	digest, err := o.buildImage(ctx)
	if err != nil {
		return fmt.Errorf("building the image: %w", err)
	}
	archives, err := o.buildPrograms(ctx, digest)
	if err != nil {
		return err
	}
	if err := o.packChart(digest); err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	if err := o.writeKrew(archives); err != nil {
		return fmt.Errorf("writing the manifest for krew: %w", err)
	}
	return o.writeSums()
}

// buildImage builds the image with hack/image, and returns its digest.
func (o *options) buildImage(ctx context.Context) (digest string, err error) {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(o.output, "handwerk-image.tar")
	args := []string{
		"run", ".", "-dir", dir, "-main", o.main, "-name", o.image + ":" + o.version, "-version", o.version,
		"-platforms", o.imagePlatforms, "-licenses", "Apache-2.0", "-o", archive, "--", "run", "--config", "/etc/handwerk",
	}
	if err := o.goCommand(ctx, imageTool(dir), nil, args...); err != nil {
		return "", err
	}
	return imageDigest(archive)
}

// imageTool returns the folder of hack/image in a checkout.
func imageTool(dir string) string { return filepath.Join(dir, "hack", "image") }

// goCommand runs go in a folder. Settings of the environment that would change the output are fixed.
func (o *options) goCommand(ctx context.Context, dir string, env []string, args ...string) error {
	run := exec.CommandContext(ctx, "go", args...)
	run.Dir, run.Stdout, run.Stderr = dir, os.Stdout, os.Stderr
	run.Env = append(append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOEXPERIMENT="), env...)
	if err := run.Run(); err != nil {
		return fmt.Errorf("running go %s: %w", strings.Join(args[:2], " "), err)
	}
	return nil
}
