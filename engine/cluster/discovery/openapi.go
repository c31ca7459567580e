// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientopenapi "k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/openapi"
)

// Schemas returns the OpenAPI schemas of the API server's kinds. It caches the schemas of a group and version until
// the server says that they have changed. All methods are safe for use by several goroutines.
type Schemas struct {
	discovery discovery.DiscoveryInterfaceWithContext

	mu       sync.Mutex
	versions map[schema.GroupVersion]published
}

// published are the schemas of a group and version that were needed so far; nil for unknown kinds. The hash is the
// server's.
type published struct {
	hash  string
	kinds map[string]*spec.Schema
}

// Schemas returns the schemas of the server's kinds. It sends no request yet.
func (c *Catalog) Schemas() *Schemas {
	return &Schemas{discovery: c.discovery, versions: map[schema.GroupVersion]published{}}
}

// Of returns the schemas of kinds, with their references resolved and without descriptions. It leaves out kinds for
// which the server publishes no schema. One request finds out which groups and versions have changed, and each of
// these takes another one. An error means that the server could not be asked.
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

// read returns the schemas of a group and version. It asks the server if the server's have changed, or if a kind
// was not read before.
func (s *Schemas) read(
	ctx context.Context, gv schema.GroupVersion, path clientopenapi.GroupVersionWithContext, wanted []string,
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
	named := map[schema.GroupVersionKind]string{}
	for name, s := range document.Components.Schemas {
		if kind, is := openapi.KindOf(s); is {
			named[kind] = name
		}
	}
	whole := openapi.New(func(name string) *spec.Schema { return document.Components.Schemas[name] })
	for _, kind := range wanted {
		fresh.kinds[kind] = nil
		if name, found := named[gv.WithKind(kind)]; found {
			fresh.kinds[kind] = whole.Named(name)
		}
	}
	s.versions[gv] = fresh
	return fresh.kinds, nil
}

// pathOf returns the server's name of the document of a group and version.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
