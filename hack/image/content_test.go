// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// isStatic expects a program for the platform that needs no loader and no library.
func isStatic(t *testing.T, content string, platform *v1.Platform) {
	t.Helper()
	f, err := elf.NewFile(strings.NewReader(content))
	if err != nil {
		t.Fatalf("%s: reading program: %v", platform, err)
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[platform.Architecture]
	if f.Machine != want {
		t.Errorf("%s: the program is for %v", platform, f.Machine)
	}
	for _, header := range f.Progs {
		if header.Type == elf.PT_INTERP || header.Type == elf.PT_DYNAMIC {
			t.Errorf("%s: the program has %v", platform, header.Type)
		}
	}
}

func TestTheCertificatesAreRoots(t *testing.T) {
	pool, count := x509.NewCertPool(), 0
	for rest := certificates(); len(rest) > 0; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("there is something else than PEM after %d certificates", count)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			t.Fatalf("certificate %d is not an authority's (%v)", count, err)
		}
		pool.AddCert(certificate)
	}
	if count < 100 {
		t.Errorf("there are %d certificates", count)
	}
}

// TestTheDockerfileBuildsTheLike: what it says of the image is what this program writes.
func TestTheDockerfileBuildsTheLike(t *testing.T) {
	stages := strings.Split(read(t, filepath.Join(root(t), "Dockerfile")), "\nFROM ")
	last := stages[len(stages)-1]
	said := map[string]string{}
	for line := range strings.Lines(last) {
		if instruction, rest, found := strings.Cut(strings.TrimSpace(line), " "); found {
			said[instruction] = rest
		}
	}
	list := func(text string) (elements []string) {
		if err := json.Unmarshal([]byte(text), &elements); err != nil {
			t.Fatalf("reading %s of the Dockerfile: %v", text, err)
		}
		return elements
	}
	got := v1.Config{
		User: said["USER"], WorkingDir: said["WORKDIR"], Entrypoint: list(said["ENTRYPOINT"]), Cmd: list(said["CMD"]),
	}
	makefile := read(t, filepath.Join(root(t), "Makefile"))
	_, arguments, _ := strings.Cut(regexp.MustCompile("(?m)^IMAGE_FLAGS .*$").FindString(makefile), " -- ")
	image, err := (&options{arguments: strings.Fields(arguments)}).image(aProgram(t), emptyLayer(t), nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.Config.Env = nil // the base image of the Dockerfile sets it
	if diff := cmp.Diff(config.Config, got); diff != "" {
		t.Errorf("the Dockerfile differs (-make image +Dockerfile):\n%s", diff)
	}
	if want := "--from=build " + programPath + " " + programPath; said["COPY"] != want {
		t.Errorf("the Dockerfile copies %s, want %s", said["COPY"], want)
	}
	if want := "CGO_ENABLED=0 "; !strings.Contains(stages[1], want) {
		t.Errorf("the Dockerfile builds without %s", want)
	}
	if want := strings.ReplaceAll(strings.Join(buildFlags, " "), "-s -w", `"-s -w"`); !strings.Contains(stages[1], "go build "+want+" ") {
		t.Errorf("the Dockerfile does not build with %s", want)
	}
	if !strings.Contains(stages[0], "ARG BASE=gcr.io/distroless/static:nonroot\n") {
		t.Error("the Dockerfile's base is not the one that has certificates and the user")
	}
}

func aProgram(t *testing.T) program {
	t.Helper()
	p := program{platform: &v1.Platform{OS: "linux", Architecture: "amd64"}, file: filepath.Join(t.TempDir(), "operator")}
	write(t, p.file, "program")
	return p
}

func emptyLayer(t *testing.T) v1.Layer {
	t.Helper()
	l, err := layer(nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestTheBillOfMaterialsNamesEachModule makes the bill of this test's own program, which has modules, and of two replaced ones.
func TestTheBillOfMaterialsNamesEachModule(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 5 {
		t.Fatalf("this test has %d modules", len(info.Deps))
	}
	info.Deps = append(info.Deps,
		&debug.Module{Path: "example.com/Old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/New", Version: "v2.0.0+incompatible", Sum: "h1:abc="}},
		&debug.Module{Path: "example.com/local", Version: "v1.0.0", Replace: &debug.Module{Path: "../local"}})
	programs := []program{aProgram(t), aProgram(t)}
	programs[1].platform = &v1.Platform{OS: "linux", Architecture: "arm64"}
	for i := range programs {
		programs[i].info = info
	}
	o := &options{name: "shop/orders:v1", sbom: filepath.Join(t.TempDir(), "image.spdx.json")}
	labels := o.labels(revision{version: "v1"}, info)
	image, err := o.index(programs, labels, time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	if err := o.writeSBOM(image, programs, labels, time.Unix(0, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	text := read(t, o.sbom)
	document, err := spdxjson.Read(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatalf("reading bill of materials: %v", err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Errorf("the bill of materials is not valid: %v", err)
	}
	var got []string
	ids := map[string]bool{}
	for _, p := range document.Packages {
		id := string(p.PackageSPDXIdentifier)
		if ids[id] || !regexp.MustCompile("^[A-Za-z0-9.-]+$").MatchString(id) {
			t.Errorf("identifier %q is not valid, or there twice", id)
		}
		ids[id] = true
		for _, reference := range p.PackageExternalReferences {
			got = append(got, reference.Locator)
		}
	}
	for _, want := range append(wanted(info.Deps[:len(info.Deps)-2]),
		"pkg:golang/example.com/new@v2.0.0%2Bincompatible", "h1:abc=", "pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"),
		regexp.MustCompile(`pkg:golang/golang.org/x/crypto/x509roots/fallback@v0[^"]*`).FindString(text),
	) {
		if want == "" || !slices.Contains(got, want) {
			t.Errorf("no package has %q", want)
		}
	}
}

// billsEachModule expects the modules of the programs in an image in its bill of materials.
func billsEachModule(t *testing.T, o *options) {
	t.Helper()
	image := index(t, o.output)
	manifest, err := image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, o.sbom)
	for _, each := range manifest.Manifests {
		one, err := image.Image(each.Digest)
		if err != nil {
			t.Fatal(err)
		}
		_, contents := entries(t, mutate.Extract(one))
		info, err := buildinfo.Read(strings.NewReader(contents["operator"]))
		if err != nil {
			t.Fatalf("reading the program's modules: %v", err)
		}
		sum := sha256.Sum256([]byte(contents["operator"]))
		for _, want := range append(wanted(info.Deps), hex.EncodeToString(sum[:])) {
			if !strings.Contains(text, `"`+want+`"`) {
				t.Errorf("the bill of materials has no %q", want)
			}
		}
	}
}

// wanted are the references of modules.
func wanted(modules []*debug.Module) (references []string) {
	for _, m := range modules {
		references = append(references, packageURL(m), m.Sum)
	}
	return references
}
