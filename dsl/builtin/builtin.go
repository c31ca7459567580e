// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the built-in kinds of one Kubernetes version and their schemas, without a cluster. A real API
// server served them; `make kinds` renews them. Schemas are unpacked only when they are needed. It is pure.
package builtin

import (
	"archive/zip"
	"bytes"
	_ "embed" // for the archive
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/kinds"
	"github.com/handwerk-dev/handwerk/dsl/openapi"
)

// IndexFile is the file in the archive with the [Index].
const IndexFile = "index.json"

// Index is the list of kinds in the archive.
type Index struct {
	// Version is the Kubernetes version of all kinds, as in v1.37.0.
	Version string
	Kinds   []Entry
}

// Entry is a kind, and the name of its schema.
type Entry struct {
	kinds.Kind
	Schema string `json:",omitempty"`
}

// File returns the file in the archive with a schema. Schemas of one Go package are in one file.
func File(schema string) string { return schema[:strings.LastIndexByte(schema, '.')] + ".json" }

//go:embed kinds.zip
var archive []byte

// Kubernetes has the built-in kinds of Kubernetes. It keeps what it has read. It is not safe for use by several
// goroutines.
type Kubernetes struct {
	archive *zip.Reader
	index   Index
	files   map[string]map[string]*spec.Schema
	whole   *openapi.Whole
	err     error
}

// Open reads the list of kinds, and no schema. An error means that the program itself is broken.
func Open() (*Kubernetes, error) {
	packed, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("reading Kubernetes' kinds: %w", err)
	}
	k := &Kubernetes{archive: packed, files: map[string]map[string]*spec.Schema{}}
	k.whole = openapi.New(k.schema)
	if err := k.read(IndexFile, &k.index); err != nil {
		return nil, err
	}
	return k, nil
}

// Version returns the Kubernetes version of all kinds, as in v1.37.0.
func (k *Kubernetes) Version() string { return k.index.Version }

// Own reports whether a group is built in.
func (k *Kubernetes) Own(group string) bool {
	return slices.ContainsFunc(k.index.Kinds, func(e Entry) bool { return e.Group == group })
}

// List returns the list of kinds.
func (k *Kubernetes) List() *kinds.List {
	version := strings.TrimPrefix(k.index.Version, "v")
	if parts := strings.Split(version, "."); len(parts) > 2 {
		version = parts[0] + "." + parts[1]
	}
	out := &kinds.List{Own: k.Own, Unsure: func(string) bool { return false }, Where: "Kubernetes " + version}
	for _, e := range k.index.Kinds {
		out.Kinds = append(out.Kinds, e.Kind)
	}
	return out
}

// OfKind returns the schema of a kind, or nil.
func (k *Kubernetes) OfKind(kind schema.GroupVersionKind) *spec.Schema {
	return k.entry(func(e Entry) bool { return e.GroupVersionKind == kind })
}

// OfResource returns the schema of a resource, or nil. Without a version it is that of the preferred one.
func (k *Kubernetes) OfResource(r schema.GroupVersionResource) *spec.Schema {
	return k.entry(func(e Entry) bool {
		return e.Group == r.Group && e.Resource == r.Resource && (r.Version == "" || e.Version == r.Version)
	})
}

// Enumeration is how a description of an enumeration's values begins. The archive has no other descriptions.
const Enumeration = "Possible enum values:"

// Enumerations returns a schema by its name in OpenAPI documents, or nil. Its fields that are an enumeration have the values and a
// description of them, and fields that are objects refer to other schemas. It is shared and not to be changed.
func (k *Kubernetes) Enumerations(name string) *spec.Schema {
	if !slices.ContainsFunc(k.archive.File, func(f *zip.File) bool { return f.Name == File(name) }) {
		return nil
	}
	return k.schema(name)
}

// Err returns the errors of reading schemas. An error means that the program itself is broken.
func (k *Kubernetes) Err() error { return k.err }

func (k *Kubernetes) entry(wanted func(Entry) bool) *spec.Schema {
	i := slices.IndexFunc(k.index.Kinds, wanted)
	if i < 0 || k.index.Kinds[i].Schema == "" {
		return nil
	}
	return k.whole.Named(k.index.Kinds[i].Schema)
}

// schema returns a schema as it is in the archive, or nil.
func (k *Kubernetes) schema(name string) *spec.Schema {
	file := File(name)
	if k.files[file] == nil {
		read := map[string]*spec.Schema{}
		if err := k.read(file, &read); err != nil {
			k.err = err
		}
		k.files[file] = read
	}
	return k.files[file][name]
}

// read decodes a file of the archive.
func (k *Kubernetes) read(file string, into any) error {
	f, err := k.archive.Open(file)
	if err != nil {
		return fmt.Errorf("reading Kubernetes' kinds: %w", err)
	}
	data, err := io.ReadAll(f)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("reading Kubernetes' kinds: %s: %w", file, err)
	}
	return f.Close()
}
