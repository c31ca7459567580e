// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// packChart packs deploy/chart. The packed chart has the version, and runs the image of the release by its digest.
func (o *options) packChart(digest string) error {
	number := strings.TrimPrefix(o.version, "v")
	changes := map[string][][2]string{
		"Chart.yaml":  {{"\nversion: ", number}, {"\nappVersion: ", o.version}},
		"values.yaml": {{"\n  repository: ", o.image}, {"\n  digest: ", digest}},
	}
	var entries []entry
	root := os.DirFS(filepath.Join(o.dir, "deploy", "chart"))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, change := range changes[name] {
			if text, err = withValue(text, change[0], change[1]); err != nil {
				return fmt.Errorf("changing %s: %w", name, err)
			}
		}
		entries = append(entries, entry{path.Join("handwerk", name), text, 0o644})
		return nil
	})
	if err != nil {
		return err
	}
	packed, err := tarOf(entries)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.output, "handwerk-"+number+".tgz"), packed, 0o644)
}

// withValue returns a text with another value behind the only place of a key, up to the end of the line.
func withValue(text []byte, key, value string) ([]byte, error) {
	before, rest, found := bytes.Cut(text, []byte(key))
	if _, after, more := bytes.Cut(rest, []byte("\n")); found && more && !bytes.Contains(after, []byte(key)) {
		return bytes.Join([][]byte{before, []byte(key), []byte(value), []byte("\n"), after}, nil), nil
	}
	return nil, fmt.Errorf("want one line that begins with %q", strings.TrimSpace(key))
}

const krewHead = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: {name: handwerk}
spec:
  version: %s
  homepage: https://github.com/handwerk-dev/handwerk
  shortDescription: Write, try and look at operators in YAML
  description: |
    Runs operators that are written in YAML, in Go, or in both; says why an operator
    did something to an object, or did not; and plays operators without a cluster.
  platforms:
`

const krewPlatform = `    - selector: {matchLabels: {os: %s, arch: %s}}
      uri: %s/%s/%s
      sha256: %s
      bin: %s
`

// writeKrew writes the manifest by which krew installs the program as kubectl handwerk.
func (o *options) writeKrew(archives []archive) error {
	var out strings.Builder
	fmt.Fprintf(&out, krewHead, o.version)
	for _, one := range archives {
		sum, err := sumOf(filepath.Join(o.output, one.file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, krewPlatform, one.os, one.arch, o.url, o.version, one.file, sum, one.program)
	}
	return os.WriteFile(filepath.Join(o.output, "handwerk.krew.yaml"), []byte(out.String()), 0o644)
}

// writeSums writes SHA256SUMS, which sha256sum --check reads.
func (o *options) writeSums() error {
	entries, err := os.ReadDir(o.output)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(o.output, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(o.output, "SHA256SUMS"), []byte(out.String()), 0o644)
}

func sumOf(file string) (string, error) {
	data, err := os.ReadFile(file)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}
