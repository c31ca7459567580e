// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// path leads to a value of a document.
type path = form.Path

// part is one document of an operator.
type part struct {
	*form.Decoder
	source *source.Text
	root   *yaml.Node
	form   document
	// found are the faults that the decoder does not know, placed.
	found source.Faults
	// strays: there are unknown fields, so something missing was perhaps mistyped.
	strays bool
}

// faults returns all that is wrong with the document.
func (p *part) faults() source.Faults {
	out := slices.Clone(p.found)
	for _, f := range p.Faults {
		out = append(out, source.Fault{File: p.source.Name, Line: f.Line, Column: f.Column, Path: string(f.At), Message: f.Message})
	}
	return out
}

// read decodes the document and reports whether it is a part of an operator at all. Of something
// else, such as a ConfigMap in the same directory, only that is said.
func (p *part) read() bool {
	for i := 0; p.root.Kind == yaml.MappingNode && i+1 < len(p.root.Content); i += 2 {
		key, value := p.root.Content[i], p.root.Content[i+1]
		if key.Value == "kind" && form.IsText(value) && value.Value != Kind {
			p.FaultAt(value, "kind", "%s", p.strange(value.Value))
			return false
		}
	}
	return p.Struct("", p.root, &p.form, &form.Others{Strayed: func() { p.strays = true }})
}

// strange says of a document's kind that it is not an operator's. It may be another thing in the same folder.
func (p *part) strange(kind string) string {
	if _, near := words.Nearest(kind, []string{Kind}); near {
		return form.Unknown("kind", kind, []string{Kind})
	}
	return fmt.Sprintf("unknown kind %s (want %s; of a folder all files are read, so name the operator's own)", form.Quoted(kind), Kind)
}

// within makes a fault at a value, or within it when line and column, of the text, are not zero.
func (p *part) within(at path, line, column int, message string) source.Fault {
	return p.source.Fault(p.Nearest(at), at, line, column, message)
}

// where returns the place of a value, for other values' faults.
func (p *part) where(at path) string {
	n := p.Nearest(at)
	return fmt.Sprintf("%s:%d:%d", p.source.Name, n.Line, n.Column)
}
