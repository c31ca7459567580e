// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// holdsBook has it checked, once the resource's schema is known, that it has the fields that a machine keeps in the status:
// the API server drops others, so the object would begin anew in each pass.
func (w *watched) holdsBook(at path, machine string) {
	w.check(at, at, func(s shape.Schemas) []error {
		if misfit := lacksBook(s.Self.Schema, machine); misfit != "" {
			return []error{&shape.Misfit{Message: misfit}}
		}
		return nil
	})
}

// lacksBook says what a schema lacks of a machine's book, and what is to be added to it; empty where it lacks nothing.
func lacksBook(s *spec.Schema, machine string) string {
	if s == nil {
		return ""
	}
	book := []string{"status"}
	if machine != "" {
		book = append(book, machine)
	}
	for n := 1; n <= len(book); n++ {
		if check.Path(s, book[:n]...) == nil {
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
	var missing []string
	var lacks []crd.BookField
	for _, field := range crd.Book() {
		if check.Path(s, append(book, field.Name)...) != nil {
			missing, lacks = append(missing, strings.Join(append(book, field.Name), ".")), append(lacks, field)
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	return lacking(missing, around(book), strings.Join(listed(lacks), ", "))
}

func lacking(missing []string, where, stanza string) string {
	return fmt.Sprintf("the resource's schema has no %s, where the machine keeps its state (add to the properties of %s: {%s})",
		strings.Join(missing, ", "), where, stanza)
}

// around names what has properties.
func around(path []string) string {
	if len(path) == 0 {
		return "the object"
	}
	return strings.Join(path, ".")
}

// listed writes fields as YAML has them in a schema.
func listed(fields []crd.BookField) (out []string) {
	for _, field := range fields {
		out = append(out, field.Name+": "+field.YAML())
	}
	return out
}
