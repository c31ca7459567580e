// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// small is a module with a program that builds within seconds for any platform.
var small = map[string]string{
	"go.mod":  "module github.com/shop/orders/operator\n\ngo 1.26.0\n",
	"main.go": "package main\n\nfunc main() { println(\"orders\") }\n",
}

// checkout makes a git repository of files in a folder of its own. Its commit depends on the files alone.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkout")
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	git(t, dir, "init", "-q")
	commit(t, dir)
	return dir
}

func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "change")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-02-03T04:05:06Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-02-03T04:05:06Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// built is an image that was built from a checkout.
func built(t *testing.T, dir string, change func(*options)) *options {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "") // as if there were none
	out := filepath.Join(t.TempDir(), "image.tar")
	o := &options{
		dir: dir, main: ".", name: "shop/orders:v1", platforms: "linux/amd64,linux/arm64",
		output: out, sbom: strings.TrimSuffix(out, ".tar") + ".spdx.json",
	}
	if change != nil {
		change(o)
	}
	if err := o.build(t.Context()); err != nil {
		t.Fatalf("building image: %v", err)
	}
	return o
}

// root is the repository's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// entries returns what a tar archive has, in its order.
func entries(t *testing.T, archive io.Reader) (headers []*tar.Header, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatalf("reading archive: %v", err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("reading %s: %v", header.Name, err)
		}
		headers = append(headers, header)
		contents[header.Name] = string(content)
	}
}

// index reads an archive back as an OCI layout, and returns the image in it.
func index(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	_, contents := entries(t, strings.NewReader(read(t, archive)))
	for name, content := range contents {
		if !strings.HasSuffix(name, "/") {
			write(t, filepath.Join(dir, name), content)
		}
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatalf("reading layout: %v", err)
	}
	named, err := all.IndexManifest()
	if err != nil || len(named.Manifests) != 1 {
		t.Fatalf("the layout has the images %v (%v), want one", named, err)
	}
	image, err := all.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatalf("reading image: %v", err)
	}
	return image
}
