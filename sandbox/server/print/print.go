// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package print makes the columns that kubectl get shows of an object. It is pure.
package print

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Path prints what a column of a CRD has at its JSONPath. It reports false if there is nothing.
type Path func(object map[string]any) (values []any, found bool)

// Column is a column of a table.
type Column struct {
	metav1.TableColumnDefinition
	cell cell
}

// cell returns the value of an object's column at a time.
type cell func(o map[string]any, now time.Time) any

// timeless returns a cell that is the same at all times.
func timeless(value func(o map[string]any) any) cell {
	return func(o map[string]any, _ time.Time) any { return value(o) }
}

// Custom returns the columns of a CRD's version, with a function that compiles a JSONPath.
func Custom(definitions []any, compile func(path string) (Path, error)) []Column {
	out := []Column{nameColumn()}
	if len(definitions) == 0 {
		created := ageColumn()
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

func customCell(kind string, path Path) cell {
	return func(o map[string]any, now time.Time) any {
		values, found := path(o)
		if !found || len(values) == 0 || values[0] == nil {
			return nil
		}
		return customValue(kind, values[0], now)
	}
}

// customValue is a value as a column of a type has it; nil if it is of another type. A text can be of any value.
func customValue(kind string, value any, now time.Time) any {
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
			return age(v, now)
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

// Definitions are the columns as a table has them. A cell can be without a column.
func Definitions(columns []Column) []metav1.TableColumnDefinition {
	var out []metav1.TableColumnDefinition
	for _, c := range columns {
		if c.Name != "" {
			out = append(out, c.TableColumnDefinition)
		}
	}
	return out
}

// Cells returns the values of an object's columns at a time, from which ages are counted.
func Cells(columns []Column, o map[string]any, now time.Time) []any {
	out := make([]any, 0, len(columns))
	for _, c := range columns {
		out = append(out, c.cell(o, now))
	}
	return out
}

func column(name, kind string, priority int32, cell cell) Column {
	return Column{metav1.TableColumnDefinition{Name: name, Type: kind, Priority: priority}, cell}
}

func nameColumn() Column {
	out := column("Name", "string", 0, timeless(func(o map[string]any) any { return at(o, "metadata.name") }))
	out.Format, out.Description = "name", commonTexts()["Name"]
	return out
}

func ageColumn() Column {
	out := column("Age", "string", 0, func(o map[string]any, now time.Time) any { return age(at(o, "metadata.creationTimestamp"), now) })
	out.Description = commonTexts()["Age"]
	return out
}

// createdColumn is the one that objects of a resource without columns of its own have beside the name.
func createdColumn() Column {
	out := column("Created At", "date", 0, timeless(func(o map[string]any) any { return at(o, "metadata.creationTimestamp") }))
	out.Description = commonTexts()["Created At"]
	return out
}
