// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// patched applies the patches in some files to the objects of a bundle. Changed files lose their comments.
func patched(files []file, paths []string) ([]file, error) {
	files = slices.Clone(files)
	for _, path := range paths {
		text, err := source.ReadFile(path)
		if err != nil {
			return nil, err
		}
		patches, err := documents(string(text))
		if err != nil {
			return nil, fmt.Errorf("reading the patch %s: %w", path, err)
		}
		for _, patch := range patches {
			if files, err = patchOne(files, patch); err != nil {
				return nil, fmt.Errorf("patching by %s: %w", path, err)
			}
		}
	}
	return files, nil
}

// patchOne changes or removes the object of a patch.
func patchOne(files []file, patch map[string]any) ([]file, error) {
	if patch["kind"] == nil || at(patch, "metadata", "name") == nil {
		return nil, errors.New("a patch has the kind and the metadata.name of its object")
	}
	var known []string
	var found [][2]int
	read := make([][]map[string]any, len(files))
	for i, f := range files {
		objects, err := documents(f.text)
		if err != nil {
			return nil, err
		}
		read[i] = objects
		for j, o := range objects {
			known = append(known, identified(o))
			if means(patch, o) {
				found = append(found, [2]int{i, j})
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("there is no %s among the objects: %s", described(patch), strings.Join(known, ", "))
	case len(found) > 1:
		return nil, fmt.Errorf("there are %d objects %s: say the metadata.namespace", len(found), described(patch))
	}
	i, j := found[0][0], found[0][1]
	objects := read[i]
	if patch["$patch"] == "delete" {
		objects = slices.Delete(objects, j, j+1)
	} else {
		var err error
		if objects[j], err = merged(objects[j], patch); err != nil {
			return nil, fmt.Errorf("%s: %w", identified(patch), err)
		}
	}
	if len(objects) == 0 {
		return slices.Delete(files, i, i+1), nil
	}
	var out bytes.Buffer
	if err := writeYAML(&out, objects); err != nil {
		return nil, err
	}
	files[i].text = out.String()
	return files, nil
}

// means reports whether a patch is for an object: all parts of the identity in the patch match.
func means(patch, object map[string]any) bool {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if want := at(patch, path...); want != nil && fmt.Sprint(want) != fmt.Sprint(at(object, path...)) {
			return false
		}
	}
	return true
}

// described describes the object of a patch by its identity.
func described(patch map[string]any) string {
	out := identified(patch)
	if namespace := at(patch, "metadata", "namespace"); namespace != nil {
		out += fmt.Sprint(" in namespace ", namespace)
	}
	if version := patch["apiVersion"]; version != nil {
		out += fmt.Sprint(" of ", version)
	}
	return out
}

// identified returns an object's kind and name.
func identified(o map[string]any) string {
	return fmt.Sprint(o["kind"], " ", at(o, "metadata", "name"))
}

// merged applies a patch: a strategic merge patch for built-in kinds, and a merge patch for others.
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
	if err := apijson.Unmarshal(after, &out); err != nil { // keeps integers: a float of a million would become 1e+06
		return nil, err
	}
	return out, fits(after, version, kind)
}

// fits reports fields of an object that its kind does not have, for built-in kinds.
func fits(object []byte, version, kind string) error {
	shape, unknown := scheme.Scheme.New(schema.FromAPIVersionAndKind(version, kind))
	if unknown != nil {
		return nil
	}
	err := json.Unmarshal(object, shape)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s cannot be a %s", wrong.Field, wrong.Value)
	}
	strict := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, serializer.SerializerOptions{Strict: true})
	if err == nil {
		_, _, err = strict.Decode(object, nil, nil)
	}
	if faults, ok := runtime.AsStrictDecodingError(err); ok {
		err = errors.Join(faults.Errors()...)
	}
	return err
}

// documents reads the documents of a text that are not empty.
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

// at returns the value at a path of keys, or nil.
func at(value any, path ...string) any {
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}
