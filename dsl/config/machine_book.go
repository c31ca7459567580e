// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// meddles notes fields and conditions that an action sets and that a machine of the resource also sets. The two
// would undo each other's changes.
func (w *watched) meddles(at path, sets []dsl.Path, conditions []string) {
	list := w.form.Machine.list
	for i := range list {
		m := &dsl.Machine{Name: list[i].Name}
		kept := func(field dsl.Path) bool {
			return slices.ContainsFunc(sets, func(set dsl.Path) bool {
				return field.Covers(set) && !slices.Equal(set, dsl.Path{"status", "conditions"})
			})
		}
		if fields := m.BookFields(); slices.ContainsFunc(fields, kept) {
			w.Fault(at, "it sets %s, which the machine keeps (a person asks for a state with an annotation)", fields[slices.IndexFunc(fields, kept)])
		}
		for _, kind := range conditions {
			if kind == dsl.Ready && i == 0 || kind == m.ReadyCondition(len(list) == 1) && kind != dsl.Ready || slices.Contains(list[i].conditions(), kind) {
				w.Fault(at, "it sets the condition %s, which the machine does", kind)
			}
		}
	}
}

// booked returns the paths that machines without a filter have set before a handler runs: the state and its time.
// They may be missing at a deletion.
func (w *watched) booked(h *making) (out []string) {
	if h.whole() || h.kind == dsl.DaemonHandler || slices.Contains(h.Causes, dsl.Delete) {
		return nil
	}
	for _, given := range w.form.Machine.list {
		if given.When != "" || len(given.Labels)+len(given.Annotations) > 0 {
			continue
		}
		m := &dsl.Machine{Name: given.Name}
		way := "self." + m.Book().String()
		out = append(out, way, way+"."+dsl.BookState, way+"."+dsl.BookSince)
	}
	return out
}

// conditions returns the types of conditions that the machine's states declare.
func (m *machine) conditions() (out []string) {
	for _, s := range slices.Concat(m.States, m.Deletion) {
		if s.Condition != "" {
			out = append(out, s.Condition)
		}
	}
	return out
}

// sharedConditions notes conditions that another machine also declares.
func (w *watched) sharedConditions(at path, i int) {
	given := &w.form.Machine.list[i]
	for key, states := range map[string][]state{"states": given.States, "deletion": given.Deletion} {
		for j, s := range states {
			for k := range w.form.Machine.list[:i] {
				if other := &w.form.Machine.list[k]; s.Condition != "" && slices.Contains(other.conditions(), s.Condition) {
					w.Fault(at.Key(key).Index(j).Key("condition"), "the machine %s has the condition %s, too", other.id(), s.Condition)
				}
			}
		}
	}
}

// holdsBook checks, when the resource's schema is known, that the schema has the fields of a machine's progress with
// the right types. The API server drops fields that are not in the schema, so the object would start over in each
// reconcile; and it refuses fields of another type.
func (w *watched) holdsBook(at path, machine string) {
	w.check(at, at, func(s shape.Schemas) []error {
		if misfit := lacksBook(s.Self.Schema, machine); misfit != "" {
			return []error{&shape.Misfit{Message: misfit}}
		}
		return nil
	})
}

// lacksBook returns what a schema lacks for a machine's progress, and the fields to add; empty if it lacks nothing.
func lacksBook(s *spec.Schema, machine string) string {
	if s == nil {
		return ""
	}
	book := []string{"status"}
	if machine != "" {
		book = append(book, machine)
	}
	for n := 1; n <= len(book); n++ {
		if at := check.At(s, book[:n]...); at != nil && !mayBe(at, "object") {
			return fmt.Sprintf("the resource's schema has something else at %s, where the machine keeps its state (want a map)", strings.Join(book[:n], "."))
		}
		if check.Keeps(s, book[:n]...) {
			continue
		}
		stanza := "properties: {" + strings.Join(listed(crd.Book()), ", ") + "}"
		for i := len(book) - 1; i >= n-1; i-- {
			stanza = fmt.Sprintf("%s: {type: object, %s}", book[i], stanza)
			if i > n-1 {
				stanza = "properties: {" + stanza + "}"
			}
		}
		return lacking([]string{strings.Join(book[:n], ".")}, around(book[:n-1]), stanza)
	}
	var missing, wrong []string
	var lacks, other []crd.BookField
	for _, field := range crd.Book() {
		switch at := append(slices.Clip(book), field.Name); {
		case !check.Keeps(s, at...):
			missing, lacks = append(missing, strings.Join(at, ".")), append(lacks, field)
		case !fits(field, check.At(s, at...)):
			wrong, other = append(wrong, strings.Join(at, ".")), append(other, field)
		}
	}
	switch {
	case len(lacks) > 0:
		return lacking(missing, around(book), strings.Join(listed(lacks), ", "))
	case len(other) > 0:
		return fmt.Sprintf("the resource's schema has something else at %s, where the machine keeps its state (want in the properties of %s: {%s})",
			strings.Join(wrong, ", "), around(book), strings.Join(listed(other), ", "))
	}
	return ""
}

// fits reports whether a schema accepts a field of the progress, by its types, its formats and the fields of its
// elements. A nil schema is unknown, and fits.
func fits(f crd.BookField, s *spec.Schema) bool {
	if s == nil {
		return true
	}
	kind := mayBe(s, f.Type) || f.Type == "integer" && mayBe(s, "number")
	if !kind || !sameFormat(f, s) || len(f.Elements()) == 0 || s.Items == nil || s.Items.Schema == nil {
		return kind && sameFormat(f, s)
	}
	element := s.Items.Schema
	return mayBe(element, "object") && !slices.ContainsFunc(f.Elements(), func(field crd.BookField) bool {
		return !check.Keeps(element, field.Name) || !fits(field, check.At(element, field.Name))
	})
}

// sameFormat reports whether a schema accepts texts of the field's format.
func sameFormat(f crd.BookField, s *spec.Schema) bool {
	return f.Type != "string" || s.Format == "" || s.Format == f.Format || f.Name == dsl.BookUID && s.Format == "uuid"
}

// mayBe reports whether a schema accepts values of a type.
func mayBe(s *spec.Schema, kind string) bool { return len(s.Type) == 0 || s.Type.Contains(kind) }

func lacking(missing []string, where, stanza string) string {
	return fmt.Sprintf("the resource's schema has no %s, where the machine keeps its state (add to the properties of %s: {%s})",
		strings.Join(missing, ", "), where, stanza)
}

// around names the parent of a field.
func around(path []string) string {
	if len(path) == 0 {
		return "the object"
	}
	return strings.Join(path, ".")
}

// listed formats fields as YAML for a schema.
func listed(fields []crd.BookField) (out []string) {
	for _, field := range fields {
		out = append(out, field.Name+": "+field.YAML())
	}
	return out
}
