// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// patchConfig is the configuration of patch: the object with the fields, or options with the object under template.
type patchConfig struct {
	patchOptions
	// short: the value is the object itself.
	short bool
}

// patchOptions are the long form. The doc tags are their reference.
type patchOptions struct {
	Template patchTemplate `yaml:"template" required:"there is no object in here: want the object itself (apiVersion, kind, metadata, …), or options with the object under template" doc:"The object, by apiVersion, kind and metadata.name, with the fields that the handler owns; keys and values may have ${…}. Or one expression that gives all of it."`
	Force    bool          `yaml:"force" doc:"Whether fields that others own are taken. By default they are a failure, which names them."`
	Reach    dsl.Reach     `yaml:"reach" default:"namespace" doc:"Which objects an object with a namespace may patch. namespace: those in its own. cluster: any, also those without a namespace."`
}

// templateKey is the key of the object in the long form.
const templateKey = "template"

const bothPatches = "the object itself (apiVersion, kind, metadata, …), or options with the object under template"

// Says names the version and kind of the object; it is empty if they are computed.
func (c *patchConfig) Says() string {
	tree, _ := c.Template.value.(map[string]any)
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	if version == "" || kind == "" || strings.Contains(version+kind, "${") {
		return ""
	}
	return version + " " + kind
}

// at returns the place of the object in the handler.
func (c *patchConfig) at() []string {
	if c.short {
		return []string{patchAction}
	}
	return []string{patchAction, templateKey}
}

// ReadForm reads both forms.
func (c *patchConfig) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	plain, _ := d.Plain(at, n)
	whole, isMap := plain.(map[string]any)
	if !isMap {
		d.FaultAt(n, at, "want a map: %s", bothPatches)
		return false
	}
	_, version := whole["apiVersion"]
	_, kind := whole["kind"]
	if c.short = version || kind; !c.short {
		return d.Struct(at, n, &c.patchOptions, nil)
	}
	for _, option := range form.Fields(reflect.TypeFor[patchOptions]()) {
		if _, found := whole[option]; found {
			d.Fault(at.Key(option), "is an option, beside which the object itself stands under %s", templateKey)
			return false
		}
	}
	c.Template.value = whole
	return true
}

// DescribeForm describes both forms.
func (c *patchConfig) DescribeForm(d *form.Describer) *form.Schema {
	itself, long := patchedSchema(), d.Struct(reflect.TypeFor[patchOptions]())
	itself.Title, long.Title = "the object itself", "options"
	itself.Not = form.OneRequired("force", "reach", "status", templateKey)
	return &form.Schema{Called: "map", OneOf: []*form.Schema{long, itself}}
}

// patchTemplate is the object; nil if there is none.
type patchTemplate struct{ value any }

// ReadForm accepts any value; the kind defines its form.
func (t *patchTemplate) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	t.value, _ = d.Plain(at, n)
	return true
}

// DescribeForm describes an object, or an expression that gives one.
func (t *patchTemplate) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "map or ${…}", OneOf: []*form.Schema{patchedSchema(), form.WithExpression()}}
}

// patchedSchema describes the object, without the fields of its kind.
func patchedSchema() *form.Schema {
	text := func(doc string) *form.Schema { return &form.Schema{Type: "string", MinLength: 1, Description: doc} }
	return &form.Schema{
		Type: "object", Required: []string{"apiVersion", "kind", "metadata"}, Not: form.OneRequired("status"),
		Properties: map[string]*form.Schema{
			"apiVersion": text("The API group and version of its kind, as in apps/v1."),
			"kind":       text("Its kind, as in Node."),
			"metadata": {Description: "Its name at least; labels and annotations are fields to own.", OneOf: []*form.Schema{
				{Type: "object", Required: []string{"name"}, Properties: map[string]*form.Schema{"name": text("Its name, as in ${self.spec.node}.")}},
				{Type: "string", MinLength: 1},
			}},
		},
	}
}

// read compiles the object.
func (p *patcher) read(value any) {
	tree, isMap := value.(map[string]any)
	if isMap {
		p.object(tree)
	}
	p.template = p.writer.template(value, p.schemaOf, p.at...)
	if !isMap && p.template != nil && len(p.template.Programs()) != 1 {
		p.fault(p.at, "want an object (apiVersion, kind, metadata, …), or one expression that gives one")
	}
	if p.template != nil {
		p.checks = append(p.checks, p.placed)
	}
}

// object checks the object without evaluating expressions.
func (p *patcher) object(tree map[string]any) {
	if _, found := tree["status"]; found {
		p.fault(p.below("status"), "belongs to whoever controls the object, and cannot be patched")
	}
	version, versioned := p.required(tree, "apiVersion")
	kind, kinded := p.required(tree, "kind")
	metadata, isMap := tree["metadata"].(map[string]any)
	if isMap {
		p.metadata(metadata, len(tree))
	} else {
		p.required(tree, "metadata")
	}
	if !versioned || !kinded || strings.Contains(version+kind, "${") {
		return
	}
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		p.fault(p.below("apiVersion"), "want a version, with its group before it unless that is the core group, as in apps/v1")
		return
	}
	p.kind = group.WithKind(kind)
}

// below returns a place within the object.
func (p *patcher) below(keys ...string) []string { return slices.Concat(p.at, keys) }

// metadata checks the metadata of an object with so many fields.
func (p *patcher) metadata(tree map[string]any, fields int) {
	p.required(tree, "name", "metadata")
	owned := []string{"labels", "annotations", "finalizers", "ownerReferences"}
	some := fields > 3
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		switch {
		case key == "name", key == "namespace":
		case slices.Contains(owned, key), strings.Contains(key, "${"):
			some = true
		default:
			some = true
			p.fault(p.below("metadata", key), "cannot be patched: of metadata, a handler owns labels, annotations, finalizers and ownerReferences")
		}
	}
	if !some {
		p.fault(p.at, "there is no field to own: want labels, annotations, spec or the like besides the name")
	}
}

// required checks that a text exists in a part of the object.
func (p *patcher) required(tree map[string]any, key string, part ...string) (string, bool) {
	given, found := tree[key]
	text, isText := given.(string)
	switch {
	case !found:
		p.fault(p.below(part...), "%s is required", key)
	case !isText || text == "":
		p.fault(p.below(append(part, key)...), "want text")
	}
	return text, isText && text != ""
}

// placed checks the object's kind and place against the kinds that exist.
func (p *patcher) placed(s shape.Schemas) (out []error) {
	if s.Kinds == nil || p.kind.Empty() {
		return nil
	}
	kind, err := s.Kinds.Kind(p.kind)
	if misfit, is := errors.AsType[*shape.Misfit](err); is {
		misfit.Path = slices.Concat(p.at, misfit.Path)
	}
	if err != nil {
		return []error{err}
	}
	metadata := entry(p.template, "metadata")
	if kind.Empty() || s.Kind.Empty() || metadata == nil || len(metadata.Pieces) > 0 {
		return nil
	}
	if fault := p.misplaced(s.Kind, kind, entry(metadata, "namespace")); fault != "" {
		out = append(out, &shape.Misfit{Path: metadata.Path, Message: fault})
	}
	return out
}

// misplaced says why an object of the resource can patch no object of the kind; empty if it may.
func (p *patcher) misplaced(owner, kind shape.Kind, namespace *expr.Template) string {
	switch {
	case !kind.Namespaced && namespace != nil:
		return fmt.Sprintf("a %s is in no namespace", kind.Kind)
	case !kind.Namespaced && owner.Namespaced && p.spec.Reach != dsl.ReachCluster:
		return fmt.Sprintf("a %s is in no namespace, and a %s is in one: want reach: cluster, with which whoever may write a %[2]s chooses among all objects that the template lets them", kind.Kind, owner.Kind)
	case kind.Namespaced && !owner.Namespaced && namespace == nil:
		return fmt.Sprintf("a %s is in a namespace, and a %s is in none: want metadata.namespace", kind.Kind, owner.Kind)
	}
	return ""
}
