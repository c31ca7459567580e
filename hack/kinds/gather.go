// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/builtin"
	"github.com/handwerk-dev/handwerk/dsl/kinds"
	"github.com/handwerk-dev/handwerk/dsl/openapi"
)

// gather returns the list of kinds, and the archive with it that package builtin reads.
func gather(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (index builtin.Index, packed []byte, err error) {
	version, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return index, nil, err
	}
	all, named, err := schemas(ctx, client)
	if err != nil {
		return index, nil, err
	}
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	if err != nil {
		return index, nil, err
	}
	index.Version = version.GitVersion
	for _, kind := range kindsOf(groups, lists) {
		index.Kinds = append(index.Kinds, builtin.Entry{Kind: kind, Schema: named[kind.GroupVersionKind]})
	}
	packed, err = archive(index, all)
	return index, packed, err
}

// schemas returns the schemas of all documents, and the names of those that describe a kind.
func schemas(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (map[string]*spec.Schema, map[schema.GroupVersionKind]string, error) {
	paths, err := client.OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, named := map[string]*spec.Schema{}, map[schema.GroupVersionKind]string{}
	for path, document := range paths {
		if path != "api/v1" && (!strings.HasPrefix(path, "apis/") || strings.Count(path, "/") != 2) {
			continue // it has no group and version
		}
		data, err := document.SchemaWithContext(ctx, runtime.ContentTypeJSON)
		if err != nil {
			return nil, nil, fmt.Errorf("document %s: %w", path, err)
		}
		var read struct {
			Components struct {
				Schemas map[string]*spec.Schema `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(data, &read); err != nil {
			return nil, nil, fmt.Errorf("document %s: %w", path, err)
		}
		for name, s := range read.Components.Schemas {
			if kind, is := openapi.KindOf(s); is {
				named[kind] = name
			}
			all[name] = s
		}
	}
	return all, named, nil
}

// kindsOf returns the served kinds, without subresources: the core group first, and the preferred version of a
// group first.
func kindsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) (out []kinds.Kind) {
	served := map[string][]metav1.APIResource{}
	for _, list := range lists {
		served[list.GroupVersion] = list.APIResources
	}
	slices.SortFunc(groups, func(a, b *metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	for _, group := range groups {
		preferred := group.PreferredVersion
		others := slices.DeleteFunc(slices.Clone(group.Versions), func(v metav1.GroupVersionForDiscovery) bool { return v == preferred })
		for _, version := range append([]metav1.GroupVersionForDiscovery{preferred}, others...) {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			for _, r := range served[version.GroupVersion] {
				if strings.Contains(r.Name, "/") {
					continue
				}
				out = append(out, kinds.Kind{
					GroupVersionKind: gv.WithKind(r.Kind), Resource: r.Name, Short: r.ShortNames, Namespaced: r.Namespaced,
					Watched: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch"),
				})
			}
		}
	}
	return out
}

// archive packs the index and the schemas of its kinds, one file for each Go package of the types, so that few
// files are read. The same input gives the same bytes.
func archive(index builtin.Index, all map[string]*spec.Schema) ([]byte, error) {
	used := map[string]spec.Schema{}
	for _, kind := range index.Kinds {
		use(kind.Schema, all, used)
	}
	files := map[string]map[string]spec.Schema{}
	for name, s := range used {
		file := builtin.File(name)
		if files[file] == nil {
			files[file] = map[string]spec.Schema{}
		}
		files[file][name] = s
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	if err := add(w, builtin.IndexFile, index); err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := add(w, file, files[file]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func add(w *zip.Writer, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	file, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return err
}

// use adds a schema without its texts, and the schemas that it refers to.
func use(name string, all map[string]*spec.Schema, used map[string]spec.Schema) {
	if _, done := used[name]; done || all[name] == nil {
		return
	}
	used[name] = spec.Schema{}
	used[name] = bare(*all[name], func(name string) { use(name, all, used) })
}

// bare removes texts for people, except what they say of the values of an enumeration, and the rules for merging objects.
func bare(s spec.Schema, refersTo func(name string)) spec.Schema {
	out := spec.Schema{}
	if name, is := openapi.Reference(&s); is {
		refersTo(name)
		out.Ref = s.Ref
		if out.Ref.GetURL() == nil {
			out.Ref = s.AllOf[0].Ref
		}
		return out
	}
	out.Type, out.Format, out.Required, out.Enum = s.Type, s.Format, s.Required, s.Enum
	if at := strings.Index(s.Description, builtin.Enumeration); at >= 0 {
		out.Description = s.Description[at:]
	}
	for name, p := range s.Properties {
		if out.Properties == nil {
			out.Properties = map[string]spec.Schema{}
		}
		out.Properties[name] = bare(p, refersTo)
	}
	if s.Items != nil && s.Items.Schema != nil {
		items := bare(*s.Items.Schema, refersTo)
		out.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if s.AdditionalProperties != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows}
		if s.AdditionalProperties.Schema != nil {
			values := bare(*s.AdditionalProperties.Schema, refersTo)
			out.AdditionalProperties.Schema = &values
		}
	}
	for _, either := range s.OneOf {
		out.OneOf = append(out.OneOf, bare(either, refersTo))
	}
	for _, key := range []string{"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"} {
		if value, set := s.Extensions[key]; set {
			out.AddExtension(key, value)
		}
	}
	return out
}
