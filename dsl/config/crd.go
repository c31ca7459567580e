// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// customResource is what the configuration says of a resource of its own. See package dsl/crd.
type customResource struct {
	Kind            string        `yaml:"kind" required:"true" doc:"What an object is, in CamelCase, as in WebApp."`
	Scope           resourceScope `yaml:"scope" default:"Namespaced" doc:"Whether objects live in namespaces."`
	ListKind        string        `yaml:"listKind" doc:"What a list of objects is. By default the kind with List behind it."`
	Singular        string        `yaml:"singular" doc:"The resource's name for one object. By default the kind in lower case."`
	ShortNames      []string      `yaml:"shortNames" doc:"Short names for kubectl."`
	Categories      []string      `yaml:"categories" doc:"Names of groups of resources for kubectl, such as all."`
	Spec            shortForm     `yaml:"spec" doc:"The fields of spec. A field is its type and, behind a bar, markers, as in integer | default=1 minimum=1; an object is a map of fields. Types: string, integer, number, boolean, date, datetime, quantity, int-or-string, object (of any form), []T, map[string]T and those under types. Markers: required, default, description, enum, minimum, maximum, minLength, maxLength, pattern, format, minItems, maxItems, uniqueItems, listType, listMapKey, minProperties, maxProperties, immutable, validation (a CEL expression) and its message."`
	Status          shortForm     `yaml:"status" doc:"The fields of status, in the form of spec. Conditions are among them always."`
	Types           shortForm     `yaml:"types" doc:"Types by name, in the form of fields, for spec, status and each other."`
	OpenAPIV3Schema shortForm     `yaml:"openAPIV3Schema" doc:"The schema of the whole object in the form of Kubernetes, instead of spec, status and types."`
	Columns         []column      `yaml:"columns" doc:"What kubectl get shows beside the name. The age is added when it is not among them."`
}

type column struct {
	Name        string `yaml:"name" required:"true" doc:"The heading."`
	Path        string `yaml:"path" required:"true" doc:"Where the value is, as in .status.url."`
	Type        string `yaml:"type" doc:"string, integer, number, boolean or date. By default what the schema says."`
	Description string `yaml:"description" doc:"What the column tells."`
	Format      string `yaml:"format" doc:"More of the type, as in OpenAPI."`
	Priority    int    `yaml:"priority" doc:"Above 0, only -o wide shows the column."`
}

type resourceScope string

func (resourceScope) Choices() (string, []string) {
	return "scope", []string{"Namespaced", "Cluster"}
}

// shortForm is a map whose values are text or maps, or of the author's own form.
type shortForm map[string]any

func (f *shortForm) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		d.FaultAt(n, p, "want a map, found %s", form.Found(n))
		return false
	}
	value, ok := d.Plain(p, n)
	if ok {
		*f, ok = value.(map[string]any)
	}
	return ok
}

func (f *shortForm) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Type: "object"}
}

// customResource gives the resource the CRD that the configuration describes.
func (w *watched) customResource() {
	s := w.form.Schema
	if s == nil || w.form.Resource == "" {
		return
	}
	if _, err := dsl.ParseResourceName(w.form.Resource); err != nil {
		return // that is told already
	}
	if err := crd.CheckName(w.out.Name); err != nil {
		w.Fault(w.at.Key("resource"), "%v", err)
		return
	}
	// What is required and missing is told already; the rest is looked at all the same.
	given := &crd.Schema{
		Kind: cmp.Or(s.Kind, "Missing"), ListKind: s.ListKind, Singular: s.Singular, Scope: string(s.Scope),
		ShortNames: s.ShortNames, Categories: s.Categories,
		Spec: s.Spec, Status: s.Status, Types: s.Types, OpenAPIV3Schema: s.OpenAPIV3Schema,
		ObservedGeneration: w.form.ObservedGeneration,
	}
	for _, c := range s.Columns {
		c.Name, c.Path = cmp.Or(c.Name, "missing"), cmp.Or(c.Path, ".metadata.name")
		given.Columns = append(given.Columns, crd.Column(c))
	}
	tree, faults := crd.Build(w.out.Name, given)
	var errs []error
	for _, fault := range faults {
		fault.Path = append([]string{"schema"}, fault.Path...)
		errs = append(errs, fault)
	}
	w.misfit(w.at, "schema", errors.Join(errs...))
	w.out.CRD = tree
	w.out.CRDFault = func(err error) error { return w.within(w.at.Key("schema"), 0, 0, err.Error()) }
}

// ownSchemas are the schemas that a configuration itself describes.
type ownSchemas []ownSchema

type ownSchema struct {
	name   dsl.ResourceName
	kind   schema.GroupVersionKind
	schema *spec.Schema
}

// schemasOf returns the schemas of an operator's own resources.
func schemasOf(op *dsl.Operator) ownSchemas {
	var out ownSchemas
	for _, r := range op.Resources() {
		if r.CRD == nil {
			continue
		}
		// A CRD that was made here can be read.
		if s, err := crd.ObjectSchema(r.CRD); err == nil {
			out = append(out, ownSchema{r.Name, crd.Kind(r.CRD), s})
		}
	}
	return out
}

// ofResource returns the resource's schema; without a version, that of the only one there is.
func (s ownSchemas) ofResource(name dsl.ResourceName) *spec.Schema {
	for _, own := range s {
		if name.Resource == own.name.Resource && name.Group == own.name.Group && (name.Version == "" || name.Version == own.name.Version) {
			return own.schema
		}
	}
	return nil
}

// ofKind returns the kind's schema.
func (s ownSchemas) ofKind(kind schema.GroupVersionKind) *spec.Schema {
	for _, own := range s {
		if kind == own.kind {
			return own.schema
		}
	}
	return nil
}
