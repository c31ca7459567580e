// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl/builtin"
	"github.com/handwerk-dev/handwerk/dsl/kinds"
)

// stable is the form of a version that stays.
var stable = regexp.MustCompile(`^v\d+$`)

// column is a column without what is empty.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	Priority    int32  `json:"priority,omitempty"`
}

// tables returns the columns that kubectl get shows of each resource with a stable version, as package print of the
// sandbox reads them: a line for each column. Resources with a name and a time alone are left out.
func tables(ctx context.Context, client rest.Interface, index builtin.Index) ([]byte, error) {
	columns := map[string][]metav1.TableColumnDefinition{}
	for _, kind := range index.Kinds {
		name := kind.Group + "/" + kind.Resource
		if columns[name] != nil || !stable.MatchString(kind.Version) || !kind.Watched && kind.Resource != "componentstatuses" {
			continue
		}
		found, err := columnsOf(ctx, client, kind.Kind)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(found) == 2 && found[1].Name == "Created At" {
			continue
		}
		columns[name] = found
	}
	delete(columns, "events.k8s.io/events") // they are those of the core group
	return lines(columns)
}

// columnsOf returns the columns of a resource. Descriptions that apimachinery has are left out.
func columnsOf(ctx context.Context, client rest.Interface, kind kinds.Kind) ([]metav1.TableColumnDefinition, error) {
	path := "/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	data, err := client.Get().AbsPath(path, kind.Resource).Param("limit", "1").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	table, texts := metav1.Table{}, metav1.ObjectMeta{}.SwaggerDoc()
	if err := json.Unmarshal(data, &table); err != nil {
		return nil, err
	}
	for i, c := range table.ColumnDefinitions {
		if c.Name == "Name" && c.Description == texts["name"] || c.Name == "Age" && c.Description == texts["creationTimestamp"] {
			table.ColumnDefinitions[i].Description = ""
		}
	}
	return table.ColumnDefinitions, nil
}

// lines returns the columns in JSON, one in a line.
func lines(columns map[string][]metav1.TableColumnDefinition) ([]byte, error) {
	var resources []string
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		var rows []string
		for _, c := range columns[name] {
			row, err := json.Marshal(column{c.Name, c.Type, c.Format, c.Description, c.Priority})
			if err != nil {
				return nil, err
			}
			rows = append(rows, "  "+string(bytes.TrimSpace(row)))
		}
		resources = append(resources, fmt.Sprintf("%q: [\n%s\n]", name, strings.Join(rows, ",\n")))
	}
	return []byte("{\n" + strings.Join(resources, ",\n") + "\n}\n"), nil
}
