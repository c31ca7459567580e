// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
)

// part is one document of an operator.
type part struct {
	*decoder
	form document
	// strays: there are unknown fields, so something missing was perhaps mistyped.
	strays bool
}

// read decodes the document and reports whether it is a part of an operator at all. Of something
// else, such as a ConfigMap in the same directory, only that is said.
func (p *part) read() bool {
	for i := 0; p.root.Kind == yaml.MappingNode && i+1 < len(p.root.Content); i += 2 {
		key, value := p.root.Content[i], p.root.Content[i+1]
		if key.Value == "kind" && value.Kind == yaml.ScalarNode && isText(value) && value.Value != Kind {
			p.faultAt(value, "kind", "%s", p.strange(value.Value))
			return false
		}
	}
	strayed := func() { p.strays = true }
	return p.structure("", p.root, reflect.ValueOf(&p.form).Elem(), &others{strayed: strayed})
}

// strange says of a document's kind that it is not an operator's. It may be another thing in the same folder.
func (p *part) strange(kind string) string {
	if _, near := dsl.Nearest(kind, []string{Kind}); near {
		return unknown("kind", kind, []string{Kind})
	}
	return fmt.Sprintf("unknown kind %s (want %s; of a folder all files are read, so name the operator's own)", quoted(kind), Kind)
}

// where returns the place of a value, for other values' faults.
func (p *part) where(at path) string {
	n := p.nearest(at)
	return fmt.Sprintf("%s:%d:%d", p.source.name, n.Line, n.Column)
}

// twice notes a fault for each element of a list that was there before.
func (p *part) twice(at path, list []string) {
	first := map[string]int{}
	for i, element := range list {
		if element == "" {
			continue
		}
		if _, again := first[element]; again {
			p.fault(at.index(i), "%s is in the list twice", quoted(element))
			continue
		}
		first[element] = i
	}
}
