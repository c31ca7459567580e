// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Beside returns the YAML files of a configuration, and those in the directories of its files: CRDs and examples stand
// there. It leaves out paths that cannot be read; [Files] reports them. A file that is missing has others beside it, too.
func Beside(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() || err != nil && filepath.Ext(path) != "" {
			all = append(all, filepath.Dir(path))
		}
	}
	names, _ := Files(all)
	return names
}

// Objects returns the objects of a cluster that a YAML file has. It skips other documents, such as operators. After an
// error it returns the objects of the documents before. For the file see [ReadFile].
func Objects(name string) ([]*unstructured.Unstructured, error) {
	data, err := ReadFile(name)
	if err != nil {
		return nil, err
	}
	return ObjectsIn(data)
}

// ObjectsIn is [Objects] for the text of a file.
func ObjectsIn(data []byte) (out []*unstructured.Unstructured, err error) {
	for documents := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		var tree any
		if err := kyaml.Unmarshal(document, &tree); err != nil {
			return out, err
		}
		object, _ := tree.(map[string]any)
		o := &unstructured.Unstructured{Object: object}
		if o.GetKind() != "" && o.GetAPIVersion() != "" && !strings.HasPrefix(o.GetAPIVersion(), "handwerk.dev/") {
			out = append(out, o)
		}
	}
}
