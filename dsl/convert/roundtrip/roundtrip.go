// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package roundtrip proves with objects that fit the schemas of a resource that its conversions lose nothing.
//
// An object of each version goes to each other version and comes back. Spec and status must be the same then, and the object must be
// valid where it was. The objects are made from the schemas, and always the same.
package roundtrip

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// tries is the number of objects of each version. Twice as many are made, as some break the rules of their schema.
const tries = 50

// Fault is a conversion that loses or breaks something.
type Fault struct {
	// Version is the further version: the object was converted between it and the resource's own.
	Version string
	// Err says what happened, and Example has the spec and status of the object, in JSON.
	Err     error
	Example string
}

// Error has all of it.
func (f *Fault) Error() string {
	return fmt.Sprintf("%v, as for %s", f.Err, plain.Short(f.Example, 300))
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Check returns the first fault of each way between the own version of a resource and a further one. A resource without a schema
// has none.
func Check(r *dsl.Resource) (out []*Fault, err error) {
	c := convert.Of(r)
	if c == nil || r.CRD == nil {
		return nil, nil
	}
	versions, err := versionsOf(r)
	if err != nil {
		return nil, err
	}
	for i, other := range versions {
		for j, way := range [][2]*version{{other, versions[0]}, {versions[0], other}} {
			if i == 0 {
				continue // the resource's own
			}
			if err := both(c, r.Name.Group, way[0], way[1], uint64(2*i+j)); err != nil {
				err.Version = other.name
				out = append(out, err)
			}
		}
	}
	return out, nil
}

// both takes objects of one version to another and back.
func both(c *convert.Converter, group string, from, to *version, seed uint64) *Fault {
	objects := from.objects(group, seed)
	for _, object := range objects {
		if err := through(c, group, object, from, to); err != nil {
			example, _ := plain.AppendJSON(nil, shown(object)) // it was made here
			return &Fault{Err: err, Example: string(example)}
		}
	}
	if len(objects) == 0 {
		return &Fault{Err: fmt.Errorf("no object of version %s that fits its schema could be made", from.name), Example: "{}"}
	}
	return nil
}

// shown is the part of an object that is compared.
func shown(object map[string]any) map[string]any {
	out := maps.Clone(object)
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(out, key)
	}
	return out
}

// objects makes objects that are valid.
func (v *version) objects(group string, seed uint64) (out []map[string]any) {
	g := generator{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // no secret: the same objects each time
	body := withoutConditions(v.schema)
	for range 2 * tries {
		object, _ := g.value(body).(map[string]any)
		object["apiVersion"], object["kind"] = group+"/"+v.name, v.kind
		object["metadata"] = map[string]any{"name": "example", "namespace": "default"}
		if v.invalid(object) == nil && len(out) < tries {
			out = append(out, object)
		}
	}
	return out
}

// withoutConditions returns a schema without those of the status, which are the same in all versions: examples are shorter without them.
func withoutConditions(s *spec.Schema) *spec.Schema {
	status, out := s.Properties["status"], *s
	if slices.Contains(status.Required, "conditions") || len(status.Properties) == 0 {
		return s
	}
	status.Properties, out.Properties = maps.Clone(status.Properties), maps.Clone(s.Properties)
	if delete(status.Properties, "conditions"); len(status.Properties) == 0 {
		delete(out.Properties, "status")
		return &out
	}
	out.Properties["status"] = status
	return &out
}

// through takes an object to another version and back.
func through(c *convert.Converter, group string, object map[string]any, from, to *version) error {
	there, err := c.Convert(object, group+"/"+to.name)
	if err != nil {
		return err
	}
	to.prune(there)
	if err := to.invalid(there); err != nil {
		return fmt.Errorf("from %s it becomes invalid in %s: %w", from.name, to.name, err)
	}
	back, err := c.Convert(there, group+"/"+from.name)
	if err != nil {
		return err
	}
	from.prune(back)
	path, was, is := difference("", shown(object), shown(back))
	switch {
	case path == "":
		return nil
	case is == nil:
		return fmt.Errorf("%s is lost from %s to %s and back", path, from.name, to.name)
	}
	return fmt.Errorf("%s was %s, and is %s after the way from %s to %s and back", path, text(was), text(is), from.name, to.name)
}

// text is a value for people.
func text(value any) string {
	out, err := plain.AppendJSON(nil, value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(out)
}

// difference returns the first field that differs. An empty object and none are the same.
func difference(path string, was, is any) (at string, before, after any) {
	a, first := was.(map[string]any)
	b, second := is.(map[string]any)
	if (first || was == nil) && (second || is == nil) {
		names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if at, before, after = difference(strings.TrimPrefix(path+"."+name, "."), a[name], b[name]); at != "" {
				return at, before, after
			}
		}
		return "", nil, nil
	}
	if text(was) == text(is) {
		return "", nil, nil
	}
	return path, was, is
}
