// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// smallMain is a program that builds within seconds for any platform, and says by whom it was built.
const smallMain = "package main\n\nvar builtBy, image string\n\nfunc main() { println(builtBy, image) }\n"

// smallCheckout returns a checkout with a small program, and with the chart and the image tool of the project.
func smallCheckout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module github.com/handwerk-dev/handwerk\n\ngo 1.26.0\n", "cmd/operator/main.go": smallMain, "LICENSE": "the licence\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"deploy/chart", "hack/image"} {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join("..", "..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAReleaseHasAllFiles makes a release of a small program, and looks at each file.
func TestAReleaseHasAllFiles(t *testing.T) {
	own := runtime.GOOS + "/" + runtime.GOARCH
	o := options{
		dir: smallCheckout(t), output: filepath.Join(t.TempDir(), "out"), main: "./cmd/operator", version: "v1.2.3", image: "registry.example.com/handwerk",
		url: "https://example.com", platforms: own + ",windows/arm64", imagePlatforms: "linux/amd64,linux/arm64", builtBy: "a test",
	}
	if err := o.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine, windows := "handwerk_v1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz", "handwerk_v1.2.3_windows_arm64.zip"
	files := []string{"SHA256SUMS", "handwerk-1.2.3.tgz", "handwerk-image.spdx.json", "handwerk-image.tar", "handwerk.krew.yaml", mine, windows}
	slices.Sort(files)
	if diff := cmp.Diff(files, namesIn(t, o.output)); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	image := "registry.example.com/handwerk:v1.2.3@" + digestOf(t, filepath.Join(o.output, "handwerk-image.tar"))

	t.Run("the program names its builder and its image", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "operator")
		if err := os.WriteFile(program, unpacked(t, filepath.Join(o.output, mine))["operator"], 0o700); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), program).CombinedOutput()
		if want := "a test " + image + "\n"; err != nil || string(said) != want {
			t.Errorf("it says %q (%v), want %q", said, err, want)
		}
	})
	t.Run("Windows has a zip with a program for it, which knows time zones", func(t *testing.T) {
		all, err := zip.OpenReader(filepath.Join(o.output, windows))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = all.Close() }()
		file, err := all.Open("operator.exe")
		if err != nil {
			t.Fatal(err)
		}
		program, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.Read(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["GOOS"]+"/"+settings["GOARCH"] != "windows/arm64" || settings["-trimpath"] != "true" || settings["-tags"] != "timetzdata" {
			t.Errorf("it was built by %v", settings)
		}
	})
	t.Run("the chart runs the image by its digest", func(t *testing.T) {
		chart := unpacked(t, filepath.Join(o.output, "handwerk-1.2.3.tgz"))
		var about struct{ Version, AppVersion string }
		var values struct {
			Image struct{ Repository, Digest string }
		}
		read(t, chart["handwerk/Chart.yaml"], &about)
		read(t, chart["handwerk/values.yaml"], &values)
		got := values.Image.Repository + ":" + about.AppVersion + "@" + values.Image.Digest
		if about.Version != "1.2.3" || got != image || chart["handwerk/templates/_helpers.tpl"] == nil {
			t.Errorf("chart %s runs %s, want %s", about.Version, got, image)
		}
	})
	t.Run("the manifest for krew has the checksums", func(t *testing.T) {
		var manifest struct {
			Spec struct {
				Version   string
				Platforms []struct {
					URI, Sha256, Bin string
					Selector         struct{ MatchLabels map[string]string }
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(o.output, "handwerk.krew.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		read(t, text, &manifest)
		if len(manifest.Spec.Platforms) != 2 || manifest.Spec.Version != "v1.2.3" {
			t.Fatalf("it has\n%s", text)
		}
		for _, p := range manifest.Spec.Platforms {
			name, found := strings.CutPrefix(p.URI, "https://example.com/v1.2.3/")
			if !found || p.Sha256 != checksum(t, filepath.Join(o.output, name)) || p.Selector.MatchLabels["os"] == "" {
				t.Errorf("%+v is not right", p)
			}
		}
	})
	t.Run("the bill of materials is SPDX", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(o.output, "handwerk-image.spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			SpdxVersion string
			Packages    []struct{ Name string }
		}
		if err := json.Unmarshal(text, &bill); err != nil || !strings.HasPrefix(bill.SpdxVersion, "SPDX-") || len(bill.Packages) < 3 {
			t.Errorf("it is %+v (%v)", bill, err)
		}
	})
	t.Run("the checksums are of all other files", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(o.output, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, name := range files {
			if name != "SHA256SUMS" {
				want.WriteString(checksum(t, filepath.Join(o.output, name)) + "  " + name + "\n")
			}
		}
		if diff := cmp.Diff(want.String(), string(text)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("nothing is overwritten", func(t *testing.T) {
		if err := o.release(t.Context()); err == nil || !strings.Contains(err.Error(), "the folder is not empty") {
			t.Errorf("a second release into the folder gives %v", err)
		}
	})
}

func TestVersionsAreChecked(t *testing.T) {
	for version, valid := range map[string]bool{"v1.2.3": true, "v1.2.3-rc.1": true, "1.2.3": false, "v1.2": false, "main": false} {
		if got := versionShape.MatchString(version); got != valid {
			t.Errorf("whether %q is valid is %v", version, got)
		}
	}
}

// TestTheWorkflowPublishesTheFiles holds that the workflow makes and names what this program writes.
func TestTheWorkflowPublishesTheFiles(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"go run ./hack/release -version", "handwerk-image.tar", "handwerk-*.tgz", "SHA256SUMS", "cosign sign ", "cosign sign-blob", "attest-build-provenance", "id-token: write",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the workflow has no %s", want)
		}
	}
	if foreign := regexp.MustCompile(`uses: [^@\s]+\n`).FindString(string(text)); foreign != "" {
		t.Errorf("an action has no version: %s", foreign)
	}
}

func namesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// unpacked returns the files of a compressed tar archive.
func unpacked(t *testing.T, file string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return filesOf(t, zipped)
}

func filesOf(t *testing.T, in io.Reader) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err == nil {
			out[header.Name], err = io.ReadAll(files)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// digestOf computes the digest of the image of an OCI archive from its files.
func digestOf(t *testing.T, file string) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	files := filesOf(t, in)
	var index struct {
		Manifests []struct{ Digest string }
	}
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(files["blobs/sha256/"+strings.TrimPrefix(index.Manifests[0].Digest, "sha256:")])
	return "sha256:" + hex.EncodeToString(sum[:])
}

func checksum(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func read(t *testing.T, text []byte, into any) {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain, into); err != nil { // the names of fields regardless of case
		t.Fatal(err)
	}
}
