// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// archive is a packed program.
type archive struct {
	// os and arch are the platform, and file and program the names of the archive and of the program in it.
	os, arch, file, program string
}

// buildPrograms builds the program for each platform, and packs it with the licence.
func (o *options) buildPrograms(ctx context.Context, digest string) (out []archive, err error) {
	licence, err := os.ReadFile(filepath.Join(o.dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	flags := fmt.Sprintf("-s -w -X 'main.builtBy=%s' -X main.image=%s:%s@%s", o.builtBy, o.image, o.version, digest)
	for platform := range strings.SplitSeq(o.platforms, ",") {
		one := archive{program: "operator"}
		one.os, one.arch, _ = strings.Cut(platform, "/")
		one.file = fmt.Sprintf("handwerk_%s_%s_%s.tar.gz", o.version, one.os, one.arch)
		pack := tarOf
		if one.os == "windows" {
			one.program, one.file, pack = "operator.exe", strings.TrimSuffix(one.file, ".tar.gz")+".zip", zipOf
		}
		built := filepath.Join(temporary, one.os+"-"+one.arch)
		// Windows and small images have no time zones. hack/image has the tag, too, so its packages need no second compilation.
		err := o.goCommand(ctx, o.dir, []string{"GOOS=" + one.os, "GOARCH=" + one.arch},
			"build", "-tags", "timetzdata", "-o", built, "-ldflags", flags, o.main)
		if err != nil {
			return nil, fmt.Errorf("building for %s: %w", platform, err)
		}
		program, err := os.ReadFile(built)
		if err != nil {
			return nil, err
		}
		packed, err := pack([]entry{{one.program, program, 0o755}, {"LICENSE", licence, 0o644}})
		if err == nil {
			err = os.WriteFile(filepath.Join(o.output, one.file), packed, 0o644)
		}
		if err != nil {
			return nil, fmt.Errorf("packing for %s: %w", platform, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// entry is a file of an archive.
type entry struct {
	name string
	data []byte
	mode int64
}

// tarOf returns files as a compressed tar archive. It has no times, so equal files give equal archives.
func tarOf(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	in := tar.NewWriter(zipped)
	for _, e := range entries {
		if err := in.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := in.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := errors.Join(in.Close(), zipped.Close())
	return out.Bytes(), err
}

// zipOf is tarOf for Windows.
func zipOf(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	in := zip.NewWriter(&out)
	for _, e := range entries {
		file, err := in.Create(e.name)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := in.Close()
	return out.Bytes(), err
}

// imageDigest returns the digest of the only image of an OCI archive.
func imageDigest(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("reading %s: it has no index.json: %w", file, err)
		}
		if header.Name != "index.json" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return "", err
		}
		var index struct {
			Manifests []struct{ Digest string }
		}
		if err := json.Unmarshal(text, &index); err != nil || len(index.Manifests) != 1 {
			return "", fmt.Errorf("reading %s: want one image in index.json, found %d: %w", file, len(index.Manifests), err)
		}
		return index.Manifests[0].Digest, nil
	}
}
