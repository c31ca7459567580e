// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// resourceOf returns the resource that a CRD defines.
func resourceOf(crd *unstructured.Unstructured) (resource, error) {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(crd.Object, path...)
		return value
	}
	r := resource{
		group: text("spec", "group"), plural: text("spec", "names", "plural"), kind: text("spec", "names", "kind"),
		namespaced: text("spec", "scope") == "Namespaced", generation: true, custom: true, fields: map[string][]string{},
		singular: cmp.Or(text("spec", "names", "singular"), strings.ToLower(text("spec", "names", "kind"))),
	}
	r.short, _, _ = unstructured.NestedStringSlice(crd.Object, "spec", "names", "shortNames")
	r.categories, _, _ = unstructured.NestedStringSlice(crd.Object, "spec", "names", "categories")
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	r.deprecated = deprecations(r, list)
	for _, item := range list {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		r.defined = append(r.defined, name)
		if version["storage"] == true {
			r.storage = name
		}
		if version["served"] == true {
			r.versions = append(r.versions, name)
		}
		if _, found, _ := unstructured.NestedMap(version, "subresources", "status"); found {
			r.status = true
		}
		r.fields[name] = customFields(version)
		if scale := customScaling(version); scale != nil {
			r.scale = scale
		}
	}
	if r.name().String() != crd.GetName() {
		return r, fmt.Errorf("the CRD's name must be %s, not %s", r.name(), crd.GetName())
	}
	if r.kind == "" || len(r.defined) == 0 {
		return r, fmt.Errorf("the CRD %s has no kind or no version", crd.GetName())
	}
	return r, nil
}

// serve serves the resource of a new CRD.
func (s *Server) serve(crd *unstructured.Unstructured, r resource, forms map[string]Schema) {
	t := newTable(r, s.history)
	t.schemas, t.webhook = forms, s.converterOf(crd)
	t.objects.Forget(s.version) // a client that asks for older changes has another cluster in mind
	s.tables[r.name()] = t
}

// defines takes a write into account that may be that of a CRD.
func (s *Server) defines(t *table, r Request, next *unstructured.Unstructured) error {
	if t.name() != crds() {
		return nil
	}
	if r.Subresource != "status" {
		s.accept(next)
	}
	if s.dry {
		return nil
	}
	return s.redefine(next)
}

// redefine serves the versions of a changed CRD, unless it waits for names. If they differ, the watches end.
func (s *Server) redefine(crd *unstructured.Unstructured) error {
	r, err := resourceOf(crd)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	t, found := s.tables[r.name()]
	if !found && !isEstablished(crd) {
		return nil
	}
	forms, err := s.formsOf(crd)
	if err != nil {
		return err
	}
	if !found {
		s.serve(crd, r, forms)
		return nil
	}
	if !maps.Equal(t.schemas, forms) {
		t.schemas, t.reformed = forms, s.version
	}
	t.webhook = s.converterOf(crd)
	same := slices.Equal(t.versions, r.versions)
	t.become(r)
	if same {
		return nil
	}
	t.cut()
	return nil
}

// formsOf returns the schemas of a CRD by version; none if the server works without schemas.
func (s *Server) formsOf(crd *unstructured.Unstructured) (map[string]Schema, error) {
	if s.schemas == nil {
		return nil, nil //nolint:nilnil // no schemas and no error
	}
	return s.schemas.Custom(crd)
}

// crdOf returns the CRD of a table, or nil.
func (s *Server) crdOf(t *table) *unstructured.Unstructured {
	if !t.custom {
		return nil
	}
	return s.tables[crds()].get(types.NamespacedName{Name: t.name().String()})
}
