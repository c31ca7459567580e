// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// cellOf returns a cell by its form: the name of a function, or a path with a letter before it and a value for its
// absence after |.
//
//	path       text
//	#path      integer; 0 if absent
//	?path      boolean; false if absent
//	@path      age of a time
//	%a,b       number of entries of one or more lists or maps
//	{path      labels
//	~path      label selector
//	path*name  texts of a field of all items of a list; without a name, the items themselves
func cellOf(form string) cell {
	if f, found := timed[form]; found {
		return f
	}
	if path, is := strings.CutPrefix(form, "@"); is {
		path, otherwise, _ := strings.Cut(path, "|")
		return func(o map[string]any, now time.Time) any { return ageOr(text(o, path), otherwise, now) }
	}
	return timeless(valueOf(form))
}

// valueOf returns the value of a cell that is the same at all times.
func valueOf(form string) func(map[string]any) any {
	if f, found := functions[form]; found {
		return f
	}
	kind, rest := form[:1], form[1:]
	path, otherwise, _ := strings.Cut(rest, "|")
	switch kind {
	case "#":
		return func(o map[string]any) any { return integerOr(o, path, otherwise) }
	case "?":
		return func(o map[string]any) any { return truth(o, path, otherwise == "true") }
	case "%":
		return func(o map[string]any) any { return counted(o, strings.Split(path, ",")) }
	case "{":
		return func(o map[string]any) any { return labels(at(o, path)) }
	case "~":
		return func(o map[string]any) any { return selector(at(o, path)) }
	}
	if list, field, is := strings.Cut(form, "*"); is {
		return func(o map[string]any) any { return joined(o, list, field) }
	}
	path, otherwise, _ = strings.Cut(form, "|")
	return func(o map[string]any) any { return textOr(o, path, otherwise) }
}

func textOr(o map[string]any, path, otherwise string) string {
	if value := at(o, path); value != nil && value != "" {
		return fmt.Sprint(value)
	}
	return otherwise
}

func integerOr(o map[string]any, path, otherwise string) any {
	if at(o, path) == nil && otherwise != "" {
		return otherwise
	}
	return number(o, path)
}

func truth(o map[string]any, path string, otherwise bool) bool {
	if value, is := at(o, path).(bool); is {
		return value
	}
	return otherwise
}

func counted(o map[string]any, paths []string) (out int64) {
	for _, path := range paths {
		out += count(at(o, path))
	}
	return out
}

// labels returns labels as kubectl writes them.
func labels(value any) string {
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

// selector returns a label selector as kubectl writes it.
func selector(value any) string {
	if value == nil {
		return "<none>"
	}
	return metav1.FormatLabelSelector(selectorOf(value))
}

// selectorOf returns the typed form of a label selector.
func selectorOf(value any) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	m, _ := value.(map[string]any)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(m, out) // fields of a wrong type are left out
	return out
}

// joined returns the texts of a list; with a field, those of the field of its items.
func joined(o map[string]any, list, field string) string {
	items, _ := at(o, list).([]any)
	return strings.Join(texts(items, field), ",")
}

func texts(items []any, field string) []string {
	out := []string{}
	for _, item := range items {
		if m, is := item.(map[string]any); is && field != "" {
			item = text(m, field)
		}
		out = append(out, fmt.Sprint(item))
	}
	return out
}

// shortened returns as many of the texts as a column shows, with the number of the others.
func shortened(all []string, most int, separator string) string {
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], separator), more)
	}
	return strings.Join(all, separator)
}

// age is the time since a timestamp.
func age(value any, now time.Time) string {
	s, _ := value.(string)
	return ageOr(s, "<unknown>", now)
}

// ageOr is the time since a timestamp, with another text for its absence.
func ageOr(timestamp, otherwise string, now time.Time) string {
	if timestamp == "" {
		return otherwise
	}
	then, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return "<invalid>"
	}
	return duration.HumanDuration(now.Sub(then))
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

// condition returns the condition of a type, or nil.
func condition(o map[string]any, path, kind string) map[string]any {
	for _, c := range each(o, path) {
		if text(c, "type") == kind {
			return c
		}
	}
	return nil
}

// holds reports whether the status has a condition that is True.
func holds(o map[string]any, kind string) bool {
	return text(condition(o, "status.conditions", kind), "status") == "True"
}

// annotation returns the value of an annotation, whose name may have dots.
func annotation(o map[string]any, name string) string {
	all, _ := at(o, "metadata.annotations").(map[string]any)
	out, _ := all[name].(string)
	return out
}
