// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package convert converts objects between the versions of a resource.
//
// Every conversion leads over the version that the resource is declared with. An object in another version begins as a copy of the
// fields that both versions have at the same place. Then fields move, and then the function of the resource completes it.
//
// Fields that the other version has nowhere are kept in an annotation, by the version that has them. They return when an object of
// that version is made of it again, unless the function sets them. Fields within lists are not kept. It is pure.
package convert

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Converter converts the objects of one resource. Its methods may be called from any goroutine.
type Converter struct {
	group, own, annotation string
	ways                   map[string]dsl.Conversion
	// schemas are those of whole objects by version, as in a CRD. A version without one has all fields.
	schemas map[string]map[string]any
}

// Of returns what converts the objects of a resource; nil if it converts none.
func Of(r *dsl.Resource) *Converter {
	if !r.Converts() {
		return nil
	}
	c := &Converter{group: r.Name.Group, own: r.Name.Version, ways: map[string]dsl.Conversion{r.Name.Version: {}}, schemas: map[string]map[string]any{}}
	if op := r.Operator(); op != nil {
		c.annotation = op.VersionsAnnotation()
	}
	versions, _, _ := unstructured.NestedFieldNoCopy(r.CRD, "spec", "versions")
	for _, version := range plain.Maps(versions) {
		name, _ := version["name"].(string)
		schema, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
		c.schemas[name], _ = schema.(map[string]any)
		c.ways[name] = dsl.Conversion{Version: name}
	}
	for _, way := range r.Conversions() {
		c.ways[way.Version] = way
	}
	return c
}

// Convert returns an object in another API version, as in example.com/v2. The object stays as it is. The error names the versions.
func (c *Converter) Convert(object map[string]any, apiVersion string) (map[string]any, error) {
	is, _ := object["apiVersion"].(string)
	from, to := strings.TrimPrefix(is, c.group+"/"), strings.TrimPrefix(apiVersion, c.group+"/")
	if from == to {
		return object, nil
	}
	out := object
	for _, step := range [][2]string{{from, c.own}, {c.own, to}} {
		if step[0] == step[1] {
			continue
		}
		var err error
		if out, err = c.step(out, step[0], step[1]); err != nil {
			return nil, fmt.Errorf("converting %s to %s: %w", step[0], step[1], err)
		}
	}
	return out, nil
}

// step converts between the resource's own version and another one.
func (c *Converter) step(object map[string]any, from, to string) (map[string]any, error) {
	for _, version := range []string{from, to} {
		if _, known := c.ways[version]; !known {
			return nil, fmt.Errorf("the resource has no version %q", version)
		}
	}
	out, rest := begun(object, c.schemas[to])
	out["apiVersion"] = c.group + "/" + to
	way, fn := c.ways[from], c.ways[from].To
	moved, movedTo := way.Moved, way.MovedTo
	if from == c.own {
		way, fn = c.ways[to], c.ways[to].From
		moved, movedTo = way.MovedTo, way.Moved
	}
	// A place that is the beginning of one move and the end of another takes the value of the other.
	for _, path := range moved {
		remove(rest, path, true)
		Remove(out, path)
	}
	if err := c.keep(out, rest, from, to); err != nil {
		return nil, err
	}
	for i, path := range moved {
		Remove(out, movedTo[i])
		if value, found := path.In(object); found {
			if err := Put(out, movedTo[i], runtime.DeepCopyJSONValue(value)); err != nil {
				return nil, fmt.Errorf("moving %s: %w", path, err)
			}
		}
	}
	if fn == nil {
		return out, nil
	}
	return out, fn(object, out)
}

// begun returns an object with all that a version has at the same place, and the other fields.
func begun(object, schema map[string]any) (out, rest map[string]any) {
	out, rest = map[string]any{}, map[string]any{}
	for key, value := range object {
		switch key {
		case "apiVersion", "kind":
			out[key] = value
		case "metadata":
			out[key] = runtime.DeepCopyJSONValue(value)
		default:
			shared, left, some := split(value, property(schema, key))
			if some {
				out[key] = shared
			} else {
				left = runtime.DeepCopyJSONValue(value)
			}
			setRest(rest, key, left)
		}
	}
	return out, rest
}

// keep brings back what was kept for the version that the object becomes, and keeps what that version does not have.
func (c *Converter) keep(out, rest map[string]any, from, to string) error {
	metadata, _ := out["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		out["metadata"] = metadata
	}
	notes, _ := metadata["annotations"].(map[string]any)
	kept := c.kept(notes)
	if fields, is := kept[to].(map[string]any); is {
		for _, key := range []string{"apiVersion", "kind", "metadata"} {
			delete(fields, key)
		}
		merge(out, fitting(fields, c.schemas[to]))
	}
	delete(kept, to)
	if delete(kept, from); len(rest) > 0 {
		kept[from] = rest
	}
	if notes == nil && len(kept) > 0 {
		notes = map[string]any{}
	}
	if delete(notes, c.annotation); len(kept) > 0 {
		text, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		notes[c.annotation] = string(text)
	}
	if delete(metadata, "annotations"); len(notes) > 0 {
		metadata["annotations"] = notes
	}
	return nil
}

// kept returns the content of the annotation. It is empty if the annotation is no JSON object. Whoever may write one object can write the
// annotation, and an error would fail each list with that object, so also those of other namespaces.
func (c *Converter) kept(annotations map[string]any) (out map[string]any) {
	text, _ := annotations[c.annotation].(string)
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil || out == nil {
		return map[string]any{}
	}
	return out
}
