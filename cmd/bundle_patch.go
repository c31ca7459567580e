// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// patched changes the objects of a bundle as the patches in some files say. A file that is changed loses its comments.
func patched(files []file, paths []string) ([]file, error) {
	files = slices.Clone(files)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		patches, err := documents(string(text))
		if err != nil {
			return nil, fmt.Errorf("reading the patch %s: %w", path, err)
		}
		for _, patch := range patches {
			if err := patchOne(files, patch); err != nil {
				return nil, fmt.Errorf("patching by %s: %w", path, err)
			}
		}
	}
	return files, nil
}

// patchOne changes the object that a patch is for.
func patchOne(files []file, patch map[string]any) error {
	if patch["kind"] == nil || at(patch, "metadata", "name") == nil {
		return errors.New("a patch has the kind and the metadata.name of its object")
	}
	want := identified(patch)
	var known []string
	for i, f := range files {
		objects, err := documents(f.text)
		if err != nil {
			return err
		}
		for j, o := range objects {
			known = append(known, identified(o))
			if identified(o) != want {
				continue
			}
			if objects[j], err = merged(o, patch); err != nil {
				return fmt.Errorf("%s: %w", want, err)
			}
			var out bytes.Buffer
			if err := writeYAML(&out, objects); err != nil {
				return err
			}
			files[i].text = out.String()
			return nil
		}
	}
	return fmt.Errorf("there is no %s among the objects: %s", want, strings.Join(known, ", "))
}

// identified is an object's kind and name.
func identified(o map[string]any) string {
	return fmt.Sprint(o["kind"], " ", at(o, "metadata", "name"))
}

// merged applies a patch: strategically where the kind is one of Kubernetes, and as a merge patch elsewhere.
func merged(object, patch map[string]any) (map[string]any, error) {
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	var after []byte
	if shape, unknown := scheme.Scheme.New(schema.FromAPIVersionAndKind(version, kind)); unknown != nil {
		after, err = jsonpatch.MergePatch(before, change)
	} else {
		after, err = strategicpatch.StrategicMergePatch(before, change, shape)
	}
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(after, &out); err != nil {
		return nil, err
	}
	return out, fits(after, version, kind)
}

// fits reports what an object has that its kind has not, where the kind is one of Kubernetes.
func fits(object []byte, version, kind string) error {
	shape, unknown := scheme.Scheme.New(schema.FromAPIVersionAndKind(version, kind))
	if unknown != nil {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(object))
	in.DisallowUnknownFields()
	err := in.Decode(shape)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s cannot be a %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// documents reads the documents of a text that have anything in them.
func documents(text string) (out []map[string]any, err error) {
	for in := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one yaml.Node
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if one.Content[0].Tag == "!!null" {
			continue
		}
		if one.Content[0].Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: a document is an object, with a kind and a name", one.Content[0].Line)
		}
		var object map[string]any
		if err := one.Decode(&object); err != nil {
			return nil, err
		}
		out = append(out, object)
	}
}

// at returns what is below a path of keys, nil where there is nothing.
func at(value any, path ...string) any {
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}
