// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"

	"github.com/handwerk-dev/handwerk/sandbox/server/print"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// tabular reports whether the client wants objects as the rows of a table.
func (r Request) tabular() bool { return r.shape.as == "Table" }

// columnsOf returns the columns of a resource in the version of a request.
func (s *Server) columnsOf(t *table, version string) []print.Column {
	crd := s.crdOf(t)
	if crd == nil {
		return print.For(t.group, t.plural)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		if v, _ := item.(map[string]any); v["name"] == version {
			columns, _ := v["additionalPrinterColumns"].([]any)
			return print.Custom(columns, compile)
		}
	}
	return print.Custom(nil, compile)
}

// compile returns the values at a JSONPath as a CRD has it. They are for one reader at a time.
func compile(path string) (print.Path, error) {
	compiled := jsonpath.New("column").AllowMissingKeys(true)
	if err := compiled.Parse("{" + path + "}"); err != nil {
		return nil, err
	}
	return func(object map[string]any) ([]any, bool) {
		results, err := compiled.FindResults(object)
		if err != nil || len(results) == 0 {
			return nil, false
		}
		var out []any
		for _, value := range results[0] {
			out = append(out, value.Interface())
		}
		return out, true
	}, nil
}

// tableOf returns a table of one object.
func tableOf(t *table, r Request, o *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"kind": "Table", "apiVersion": r.shape.apiVersion(),
		"metadata":          map[string]any{"resourceVersion": o.GetResourceVersion()},
		"columnDefinitions": print.Definitions(r.columns), "rows": []any{rowOf(t, r, o)},
	}
}

// rowOf returns the row of an object, with as much of the object as the client wants.
func rowOf(t *table, r Request, o *unstructured.Unstructured) map[string]any {
	shown := r.view.show(o)
	if t.custom {
		o = shown
	} else { // a built-in kind prints all versions alike, and Events of both groups
		o, _ = t.inStorage(t.asStored(o))
	}
	out := map[string]any{"cells": print.Cells(r.columns, o.Object, r.clock.Now())}
	if conditions := print.Conditions(t.group, t.plural, o.Object); conditions != nil {
		out["conditions"] = conditions
	}
	whole := r
	switch metav1.IncludeObjectPolicy(r.options.Get("includeObject")) {
	case metav1.IncludeNone:
		out["object"] = nil
		return out
	case metav1.IncludeObject:
		whole.shape.as = ""
	default:
		whole.shape.as = "PartialObjectMetadata"
	}
	out["object"] = present(t, whole, shown)
	return out
}

// encoded returns JSON.
func encoded(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		panic("server: " + err.Error()) // not reached: objects came as JSON
	}
	return out
}
