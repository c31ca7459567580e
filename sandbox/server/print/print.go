// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package print makes the columns that kubectl get shows of an object. It is pure.
package print

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Path prints what a column of a CRD has at its JSONPath. It reports false if there is nothing.
type Path func(object map[string]any) (values []any, found bool)

// Column is a column of a table.
type Column struct {
	metav1.TableColumnDefinition
	cell func(o map[string]any) any
}

// For returns the columns of the objects of a built-in kind, or of one without columns of its own.
func For(group, plural string) []Column {
	for row := range strings.Lines(builtin) {
		name, columns, _ := strings.Cut(strings.TrimSpace(row), " ")
		if name == group+"/"+plural && name != "" {
			if plural == "events" { // they have their name among the wide columns
				return parsed(columns)
			}
			return append([]Column{nameColumn()}, parsed(columns)...)
		}
	}
	return []Column{nameColumn(), column("Created At", "date", 0, func(o map[string]any) any { return at(o, "metadata.creationTimestamp") })}
}

// Custom returns the columns of a CRD's version, with a function that compiles a JSONPath.
func Custom(definitions []any, compile func(path string) (Path, error)) []Column {
	out := []Column{nameColumn()}
	if len(definitions) == 0 {
		created := ageColumn(0)
		created.Type = "date"
		return append(out, created)
	}
	for _, item := range definitions {
		d, _ := item.(map[string]any)
		path, err := compile(text(d, "jsonPath"))
		if err != nil {
			continue
		}
		priority, _ := d["priority"].(int64)
		c := column(text(d, "name"), text(d, "type"), int32(priority), customCell(text(d, "type"), path))
		c.Format = text(d, "format")
		if c.Description = text(d, "description"); c.Description == "" {
			c.Description = "Custom resource definition column (in JSONPath format): " + text(d, "jsonPath")
		}
		out = append(out, c)
	}
	return out
}

func customCell(kind string, path Path) func(map[string]any) any {
	return func(o map[string]any) any {
		values, found := path(o)
		if !found || len(values) == 0 || values[0] == nil {
			return nil
		}
		return customValue(kind, values[0])
	}
}

// customValue is a value as a column of a type has it; nil if it is of another type. A text can be of any value.
func customValue(kind string, value any) any {
	switch v := value.(type) {
	case int64:
		switch kind {
		case "integer":
			return v
		case "number":
			return float64(v)
		}
	case float64:
		switch kind {
		case "integer":
			return int64(v)
		case "number":
			return v
		}
	case bool:
		if kind == "boolean" {
			return v
		}
	case string:
		if kind == "date" {
			return age(v)
		}
	}
	if kind != "string" {
		return nil
	}
	switch value.(type) {
	case map[string]any, []any:
		out, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		return string(out)
	}
	return fmt.Sprint(value)
}

// Definitions are the columns as a table has them.
func Definitions(columns []Column) []metav1.TableColumnDefinition {
	var out []metav1.TableColumnDefinition
	for _, c := range columns {
		out = append(out, c.TableColumnDefinition)
	}
	return out
}

// Cells are the values of an object's columns.
func Cells(columns []Column, o map[string]any) []any {
	out := make([]any, 0, len(columns))
	for _, c := range columns {
		out = append(out, c.cell(o))
	}
	return out
}

func column(name, kind string, priority int32, cell func(map[string]any) any) Column {
	return Column{metav1.TableColumnDefinition{Name: name, Type: kind, Priority: priority}, cell}
}

func nameColumn() Column {
	out := column("Name", "string", 0, func(o map[string]any) any { return at(o, "metadata.name") })
	out.Format, out.Description = "name", metav1.ObjectMeta{}.SwaggerDoc()["name"]
	return out
}

func ageColumn(priority int32) Column {
	return column("Age", "string", priority, func(o map[string]any) any { return age(at(o, "metadata.creationTimestamp")) })
}

// age is the time since a timestamp.
func age(value any) string {
	s, _ := value.(string)
	if s == "" {
		return "<unknown>"
	}
	then, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return "<invalid>"
	}
	return duration.HumanDuration(time.Since(then))
}

// parsed reads columns in the form of the table: a name, a colon and a cell each, with a plus for those of -o wide.
func parsed(columns string) []Column {
	var out []Column
	for each := range strings.SplitSeq(columns, "; ") {
		name, cell, _ := strings.Cut(each, ":")
		priority := int32(0)
		if strings.HasPrefix(name, "+") {
			name, priority = name[1:], 1
		}
		if name == "Age" {
			out = append(out, ageColumn(priority))
			continue
		}
		kind := "string"
		if strings.HasPrefix(cell, "#") {
			kind = "integer"
		}
		out = append(out, column(name, kind, priority, cellOf(cell)))
	}
	return out
}

// cellOf returns the cell of a column: a function by its name, an integer at a path after #, the number of entries
// after %, or the text at a path, with another one after | for its absence.
func cellOf(cell string) func(map[string]any) any {
	if f, found := functions[cell]; found {
		return f
	}
	if path, ok := strings.CutPrefix(cell, "#"); ok {
		return func(o map[string]any) any { return number(o, path) }
	}
	if path, ok := strings.CutPrefix(cell, "%"); ok {
		return func(o map[string]any) any { return count(at(o, path)) }
	}
	path, otherwise, _ := strings.Cut(cell, "|")
	return func(o map[string]any) any {
		if value := at(o, path); value != nil && value != "" {
			return fmt.Sprint(value)
		}
		return otherwise
	}
}

// at returns the value at a path of names with dots between them, or nil.
func at(o map[string]any, path string) any {
	out, _, _ := unstructured.NestedFieldNoCopy(o, strings.Split(path, ".")...)
	return out
}

func text(o map[string]any, path string) string {
	out, _ := at(o, path).(string)
	return out
}

func number(o map[string]any, path string) int64 {
	out, _ := at(o, path).(int64)
	return out
}

func count(value any) int64 {
	switch v := value.(type) {
	case map[string]any:
		return int64(len(v))
	case []any:
		return int64(len(v))
	}
	return 0
}

// each returns the maps of a list.
func each(o map[string]any, path string) []map[string]any {
	list, _ := at(o, path).([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// pairs is a selector as kubectl writes it.
func pairs(value any) string {
	m, _ := value.(map[string]any)
	var out []string
	for k, v := range m {
		out = append(out, fmt.Sprint(k, "=", v))
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}
