// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// option is what package openapi of the sandbox reads of a parameter.
type option struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// options returns the parameters of the operations of one version, which are those of all: a line for each.
func options(ctx context.Context, client rest.Interface) ([]byte, error) {
	data, err := client.Get().AbsPath("/openapi/v3/apis/apps/v1").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	type parameter struct {
		Name, Description string
		Schema            struct{ Type string }
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	out := map[string]option{}
	for _, item := range document.Paths {
		for method, content := range item {
			var given []parameter
			var operation struct{ Parameters []parameter }
			if json.Unmarshal(content, &given) != nil {
				if err := json.Unmarshal(content, &operation); err != nil {
					return nil, err
				}
				given = operation.Parameters
			}
			for _, p := range given {
				name, text := p.Name, p.Description
				switch {
				case name == "name":
					text = "" // it has the kind
				case name == "fieldManager" && method == "patch":
					name = "fieldManager of a patch" // it is described in other words
				}
				out[name] = option{p.Schema.Type, text}
			}
		}
	}
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(out)) {
		row, err := json.Marshal(out[name])
		if err != nil {
			return nil, err
		}
		rows = append(rows, fmt.Sprintf("%q: %s", name, row))
	}
	return []byte("{\n" + strings.Join(rows, ",\n") + "\n}\n"), nil
}
