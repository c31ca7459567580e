// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"

	"k8s.io/client-go/kubernetes/scheme"
	openapispec "k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/sandbox/server/openapi"
)

// Components returns the schemas of the kind's OpenAPI document. See [server.Documented].
func (f *form) Components() map[string]*openapispec.Schema {
	out := map[string]*openapispec.Schema{}
	for _, suffix := range []string{"", "List"} {
		kind := f.kind
		kind.Kind += suffix
		object, err := scheme.Scheme.New(kind)
		if err != nil {
			continue // a kind without a list
		}
		value := reflect.ValueOf(object).Elem().Interface()
		for name, s := range openapi.Components(value) {
			if out[name] == nil {
				f.known.describe(name, s)
				out[name] = s
			}
		}
		out[openapi.Name(value)].AddExtension("x-kubernetes-group-version-kind", []any{
			map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}})
	}
	return out
}
