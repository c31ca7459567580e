// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schemas knows the OpenAPI schemas of what the API server serves. What was read of a group and
// version is kept until the server says that it has changed. All methods may be called at any time
// from any goroutine.
type Schemas struct {
	discovery discovery.DiscoveryInterfaceWithContext

	mu       sync.Mutex
	versions map[schema.GroupVersion]published
}

// published are the schemas of a group and version that were asked for so far, nil for kinds that it
// does not have. The hash is the server's.
type published struct {
	hash  string
	kinds map[string]*spec.Schema
}

// Schemas returns the schemas of what the server serves. They have asked nothing yet.
func (c *Catalog) Schemas() *Schemas {
	return &Schemas{discovery: c.discovery, versions: map[schema.GroupVersion]published{}}
}

// Of returns the schemas of kinds, with what they refer to put in and without descriptions. A kind
// of which the server publishes nothing is not among them. One request tells what has changed, and
// one is needed for each group and version that has. The error tells that the server could not be
// asked.
func (s *Schemas) Of(ctx context.Context, kinds ...schema.GroupVersionKind) (map[schema.GroupVersionKind]*spec.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths, err := s.discovery.OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the schemas of the API server: %w", err)
	}
	byVersion := map[schema.GroupVersion][]string{}
	for _, kind := range kinds {
		byVersion[kind.GroupVersion()] = append(byVersion[kind.GroupVersion()], kind.Kind)
	}
	out := map[schema.GroupVersionKind]*spec.Schema{}
	for gv, wanted := range byVersion {
		path, served := paths[pathOf(gv)]
		if !served {
			continue
		}
		known, err := s.read(ctx, gv, path, wanted)
		if err != nil {
			return nil, err
		}
		for _, kind := range wanted {
			if found := known[kind]; found != nil {
				out[gv.WithKind(kind)] = found
			}
		}
	}
	return out, nil
}

// read returns the schemas of a group and version, from the server when it has others or when not
// all that is wanted was read before.
func (s *Schemas) read(
	ctx context.Context, gv schema.GroupVersion, path openapi.GroupVersionWithContext, wanted []string,
) (map[string]*spec.Schema, error) {
	known := s.versions[gv]
	unknown := func(kind string) bool { _, has := known.kinds[kind]; return !has }
	if known.hash == path.ServerRelativeURL() && !slices.ContainsFunc(wanted, unknown) {
		return known.kinds, nil
	}
	data, err := path.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return nil, fmt.Errorf("asking for the schemas of %s: %w", gv, err)
	}
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", gv, err)
	}
	fresh := published{hash: path.ServerRelativeURL(), kinds: map[string]*spec.Schema{}}
	wanted = slices.AppendSeq(wanted, maps.Keys(known.kinds))
	r := &references{all: document.Components.Schemas, done: map[string]*spec.Schema{}, open: map[string]bool{}}
	for _, kind := range wanted {
		fresh.kinds[kind] = r.kind(gv.WithKind(kind))
	}
	s.versions[gv] = fresh
	return fresh.kinds, nil
}

// pathOf is what the server calls the document of a group and version.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// references puts in what schemas refer to. What is referred to more than once is shared.
type references struct {
	all  map[string]*spec.Schema
	done map[string]*spec.Schema
	// open are those that are being put in: a schema may contain itself.
	open map[string]bool
}

// kind returns the schema of a kind, nil when there is none.
func (r *references) kind(wanted schema.GroupVersionKind) *spec.Schema {
	for name, s := range r.all {
		var kinds []schema.GroupVersionKind
		if s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) != nil || len(kinds) != 1 {
			continue // such as DeleteOptions, which is of every group
		}
		if kinds[0] == wanted {
			return r.named(name)
		}
	}
	return nil
}

func (r *references) named(name string) *spec.Schema {
	if known, done := r.done[name]; done {
		return known
	}
	s, found := r.all[name]
	if !found || r.open[name] {
		return anything()
	}
	r.open[name] = true
	out := r.whole(*s)
	delete(r.open, name)
	r.done[name] = &out
	return &out
}

// whole returns a schema with everything put in.
func (r *references) whole(s spec.Schema) spec.Schema {
	if name, is := reference(&s); is {
		return *r.named(name)
	}
	s.Description, s.Title, s.Example, s.Default = "", "", nil, nil
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = r.whole(p)
		}
		s.Properties = properties
	}
	if s.Items != nil && s.Items.Schema != nil {
		items := r.whole(*s.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		values := r.whole(*s.AdditionalProperties.Schema)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
	}
	return either(s)
}

// either marks what is an integer or text, such as a port: built-in kinds say so in another way than
// CRDs do.
func either(s spec.Schema) spec.Schema {
	if len(s.Type) > 0 || len(s.OneOf) < 2 && s.Format != "int-or-string" {
		return s
	}
	extended := spec.Extensions{"x-kubernetes-int-or-string": true}
	maps.Copy(extended, s.Extensions)
	s.Extensions = extended
	return s
}

// reference returns what a schema refers to; a reference with a description stands in an allOf.
func reference(s *spec.Schema) (name string, is bool) {
	text := s.Ref.String()
	if text == "" && len(s.AllOf) == 1 {
		text = s.AllOf[0].Ref.String()
	}
	return strings.CutPrefix(text, "#/components/schemas/")
}

// anything is the schema of an object of which no more is known.
func anything() *spec.Schema {
	out := &spec.Schema{}
	out.Type = spec.StringOrArray{"object"}
	out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return out
}
