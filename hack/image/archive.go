// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// index returns the image for all platforms.
func (o *options) index(programs []program, labels map[string]string, created time.Time) (v1.ImageIndex, error) {
	base, err := layer(baseFiles(), created)
	if err != nil {
		return nil, err
	}
	index := v1.ImageIndex(empty.Index)
	for _, p := range programs {
		image, err := o.image(p, base, labels, created)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p.platform}})
	}
	return index, nil
}

// image returns the image for a platform.
func (o *options) image(p program, base v1.Layer, labels map[string]string, created time.Time) (v1.Image, error) {
	files, err := programFiles(p)
	if err != nil {
		return nil, err
	}
	top, err := layer(files, created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: p.platform.OS, Architecture: p.platform.Architecture, Created: v1.Time{Time: created},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user, WorkingDir: "/", Entrypoint: []string{programPath}, Cmd: o.arguments, Labels: labels,
			Env: []string{"SSL_CERT_FILE=" + certificatesPath},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "user and certificates"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "go build " + o.main}})
}

// writeArchive writes an OCI layout with Docker's manifest.json, which points to the blobs of the first platform. That is the
// form that docker save writes.
func (o *options) writeArchive(index v1.ImageIndex, dir string, created time.Time) error {
	tag, err := name.NewTag(o.name)
	if err != nil {
		return err
	}
	familiar, canonical := names(tag)
	named := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{
			"io.containerd.image.name":          canonical, // containerd takes this name as it is
			"org.opencontainers.image.ref.name": tag.TagStr(),
		},
	}})
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	if err := writeDockerManifest(index, familiar, filepath.Join(dir, "manifest.json")); err != nil {
		return err
	}
	out, err := os.Create(o.output)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pack(dir, out, created); err != nil {
		return err
	}
	return out.Close()
}

// names returns the forms of a name that Docker shows and that containerd stores.
func names(tag name.Tag) (familiar, canonical string) {
	if tag.RegistryStr() != name.DefaultRegistry {
		return tag.Name(), tag.Name()
	}
	rest := tag.RepositoryStr() + ":" + tag.TagStr()
	return strings.TrimPrefix(rest, "library/"), "docker.io/" + rest
}

// writeDockerManifest writes what Docker's classic image store reads. It holds one platform for a name.
func writeDockerManifest(index v1.ImageIndex, tag, path string) error {
	all, err := index.IndexManifest()
	if err != nil {
		return err
	}
	image, err := index.Image(all.Manifests[0].Digest)
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	blob := func(hash v1.Hash) string { return "blobs/" + hash.Algorithm + "/" + hash.Hex }
	entry := tarball.Descriptor{Config: blob(manifest.Config.Digest), RepoTags: []string{tag}}
	for _, l := range manifest.Layers {
		entry.Layers = append(entry.Layers, blob(l.Digest))
	}
	text, err := json.Marshal(tarball.Manifest{entry})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// pack writes a folder as a tar archive, sorted by name. Owners, modes and times do not depend on the file system.
func pack(dir string, out io.Writer, modified time.Time) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(relative), Mode: 0o644, ModTime: modified, Format: tar.FormatUSTAR}
		if entry.IsDir() {
			header.Typeflag, header.Name, header.Mode = tar.TypeDir, header.Name+"/", 0o755
			return w.WriteHeader(header)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header.Size = int64(len(content))
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
