// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// lists notes what is wrong with how the elements of a list are told apart.
func (b *builder) lists(at steps, s *apiextensions.JSONSchemaProps) {
	kind := ""
	if s.XListType != nil {
		kind = *s.XListType
	}
	if s.Items == nil || s.Items.Schema == nil {
		return // a list without is told by the API server's code, and what is no list is nobody's concern
	}
	items := s.Items.Schema
	switch kind {
	case "set":
		if list := items.XListType; items.Type == "array" && list != nil && *list != "atomic" {
			b.faultAt(at.to("x-kubernetes-list-type"), "lists in a set are compared as a whole: theirs must be listType=atomic")
		}
		if fields := items.XMapType; items.Type == "object" && (fields == nil || *fields != "atomic") {
			b.faultAt(at.to("x-kubernetes-list-type"), "the elements of a set are single values, not objects")
		}
	case "map":
		b.listKeys(at, s, items)
	}
	if kind != "map" && len(s.XListMapKeys) > 0 {
		b.faultAt(at.to("x-kubernetes-list-map-keys"), "a list with keys must be listType=map")
	}
}

// listKeys checks the keys of a list whose elements are told apart by them.
func (b *builder) listKeys(at steps, s, items *apiextensions.JSONSchemaProps) {
	if len(s.XListMapKeys) == 0 {
		b.faultAt(at.to("x-kubernetes-list-type"), "a list of listType=map needs a key (listMapKey=…)")
	}
	if items.Type != "object" {
		b.faultAt(at.to("x-kubernetes-list-type"), "listType=map is for lists of objects")
		return
	}
	for i, key := range s.XListMapKeys {
		p, has := items.Properties[key]
		switch {
		case !has:
			b.faultAt(at.to("x-kubernetes-list-map-keys"), form.Unknown("field", key, propertiesOf(items)))
		case slices.Contains(s.XListMapKeys[:i], key):
			b.faultAt(at.to("x-kubernetes-list-map-keys"), "the key "+form.Quoted(key)+" is there twice")
		case p.Type == "array" || p.Type == "object":
			b.faultAt(at.to("x-kubernetes-list-map-keys"), "the key "+form.Quoted(key)+" must be a single value")
		case p.Default == nil && !slices.Contains(items.Required, key):
			b.faultAt(at.to("items", "properties", key, "default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property")
		}
	}
}
