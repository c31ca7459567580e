// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// things are the objects in the files beside an operator's configuration.
type things struct {
	crds, examples []thing
}

// thing is an object in a file.
type thing struct {
	*unstructured.Unstructured
	file string
}

// things reads the files beside the configuration: the CRDs that the operator does not bring itself, and the objects in
// files that are examples. A file that cannot be read is reported.
func (p *player) things(op *dsl.Operator) things {
	var out things
	own := crdsOf(op)
	for _, name := range p.files.names() {
		if source.IsCases(name) {
			continue
		}
		objects, err := source.Objects(name)
		if err != nil {
			p.lines.fault("", fmt.Errorf("reading %s: %w", name, err))
		}
		for _, o := range objects {
			switch {
			case o.GetKind() == "CustomResourceDefinition":
				if !slices.Contains(own, o.GetName()) {
					out.crds = append(out.crds, thing{o, name})
				}
			case isExample(name):
				out.examples = append(out.examples, thing{o, name})
			}
		}
	}
	return out
}

// crdsOf returns the names of the CRDs that an operator brings itself.
func crdsOf(op *dsl.Operator) (names []string) {
	for _, r := range op.Resources() {
		if r.CRD != nil {
			names = append(names, (&unstructured.Unstructured{Object: r.CRD}).GetName())
		}
	}
	return names
}

// isExample reports whether a file has objects that show what the operator does.
func isExample(name string) bool {
	return strings.HasPrefix(filepath.Base(name), "example") && !source.IsCases(name)
}

// ofOperator reports whether a file can be a part of the operator's configuration: by its name, or because it is given.
func (p *player) ofOperator(name string) bool {
	usual := !isExample(name) && !source.IsCases(name) && !strings.HasPrefix(filepath.Base(name), "crd")
	return usual || slices.ContainsFunc(p.Paths, func(path string) bool { return filepath.Clean(path) == filepath.Clean(name) })
}
