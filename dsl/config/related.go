// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

type relation struct {
	Name      string           `yaml:"name" required:"true" doc:"The name in expressions: related.<name>. Letters, digits and _."`
	Resource  dsl.ResourceName `yaml:"resource" required:"true" doc:"The resource in kubectl's spelling. It is watched."`
	Namespace string           `yaml:"namespace" doc:"The namespace of the related objects; may have ${…}. Default: that of the object; * means all."`
	Object    string           `yaml:"object" doc:"The name of a single object; may have ${…}, which may read the relations above this one, as in ${related.settings.data.secret}. Then related.<name> is that object, otherwise it is a list."`
	Selector  *selector        `yaml:"selector" min:"1" doc:"Which objects are related; the API server selects, unless a value has ${…}. Absent: all."`
	Where     form.Predicate   `yaml:"where" doc:"Which objects are related: it must be true for an object, as in object.spec.class == self.spec.class. It may read the relations above this one. Absent: it always is."`
	holding
}

// everywhere is the namespace of a relation that means all namespaces.
const everywhere = "*"

// relation adds one of the resource's relations.
func (w *watched) relation(at path, of *relation) {
	out := dsl.Relation{Name: of.Name, Resource: of.Resource, One: of.Object != ""}
	for _, other := range []string{"selector", "where"} {
		if out.One && w.Has(at.Key(other)) {
			w.FaultKey(at.Key(other), "is not for a relation with object, which names one")
		}
	}
	s := &selecting{namespace: w.text(at.Key("namespace"), of.Namespace), object: w.text(at.Key("object"), of.Object)}
	s.any, s.places = of.Namespace == everywhere, map[string]string{}
	for _, field := range []string{"namespace", "object", "selector", "where"} {
		s.places[field] = w.line(at.Key(field))
	}
	if of.Where != "" {
		object := func(s shape.Schemas) shape.Shape {
			return shape.Shape{Schema: s.Related[of.Name].Schema, Kept: s.Related[of.Name].Kept}
		}
		s.where = w.predicate(at.Key("where"), string(of.Where), nil, withoutIndexes, variable{"object", object})
	}
	if of.Selector != nil {
		s.labels, s.wanted = w.labelTemplate(at.Key("selector"), of.Selector), len(of.Selector.MatchLabels)
		if s.labels == nil {
			out.LabelSelector = w.labelSelector(at.Key("selector"), of.Selector)
		}
		if len(of.Selector.Fields) > 0 {
			w.FaultKey(at.Key("selector").Key("fields"), "is not for related objects")
		}
	}
	out.Namespace, out.Object = constant(s.namespace), constant(s.object)
	w.exists(at.Key("resource"), of.Resource)
	out.Holding = of.held(w, at, func(s shape.Schemas) *spec.Schema { return s.Related[of.Name].Schema })
	out.Select, out.After = s.selection, w.after(at, s)
	w.out.Relates(out)
}

// after returns the relations whose objects a relation reads. It notes a fault where these are not above it: so no relations choose
// by each other in a circle.
func (w *watched) after(at path, s *selecting) (out []string) {
	known := w.out.Relations()
	for _, one := range []struct {
		key      string
		programs []*expr.Program
	}{
		{"namespace", programsOf(s.namespace)}, {"object", programsOf(s.object)}, {"selector", programsOf(s.labels)}, {"where", []*expr.Program{s.where}},
	} {
		for _, program := range one.programs {
			if program == nil {
				continue // the relation does not have it, or its fault is reported
			}
			names, whole := program.Related()
			if whole {
				w.Fault(at.Key(one.key), "name the relation that is meant, as in related.settings")
			}
			for _, name := range names {
				switch {
				case !slices.ContainsFunc(known, func(r dsl.Relation) bool { return r.Name == name }):
					w.Fault(at.Key(one.key), "related.%s is not there: a relation knows those above it", name)
				case !slices.Contains(out, name):
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// constant returns the text of a template without expressions. Other templates and nil give the empty text.
func constant(t *expr.Template) string {
	if t == nil || len(t.Programs()) > 0 {
		return ""
	}
	text, err := textOf(t, expr.Scope{})
	if err != nil {
		return "" // not reached: the template was text in the file
	}
	return text
}

// programsOf returns the expressions of a template, which may be nil.
func programsOf(t *expr.Template) []*expr.Program {
	if t == nil {
		return nil
	}
	return t.Programs()
}

// text compiles a text that may contain ${…}. A missing or faulty text gives nil.
func (c *compiling) text(at path, text string) *expr.Template {
	if text == "" || text == everywhere {
		return nil
	}
	return c.template(at, text)
}

// template compiles a tree that may contain ${…}; nil if it has a fault. It is checked again when schemas are
// known.
func (c *compiling) template(at path, tree any) *expr.Template {
	compiler, err := c.compiler()
	if err != nil {
		c.Fault(at, "%v", err)
		return nil
	}
	t, err := compiler.Template(tree)
	c.unfit(at, at, err)
	if err != nil {
		return nil
	}
	c.check(at, at, func(s shape.Schemas) []error {
		s.Without = withoutIndexes
		return check.Template(t, s, nil)
	})
	return t
}

// withoutIndexes are the messages for indexes and outcomes in relations. A change of these would not trigger the
// selection again.
var withoutIndexes = map[string]string{
	expr.Children: "is not there in a relation (a handler can read them)",
	expr.Indexes:  "is not there in a relation (a handler can read it)", expr.Handlers: "is not there in a relation (a handler can read it)",
}

// labelTemplate compiles a selector with ${…} in its values; nil if it has none.
func (c *compiling) labelTemplate(at path, of *selector) *expr.Template {
	tree := map[string]any{}
	for key, value := range of.MatchLabels {
		tree[key] = value
	}
	t := c.template(at.Key("matchLabels"), tree)
	if t == nil || len(t.Programs()) == 0 {
		return nil
	}
	if len(of.MatchExpressions) > 0 {
		c.FaultKey(at.Key("matchExpressions"), "cannot stand beside labels with ${…}")
	}
	return t
}

// selecting computes the selection of a relation for an object.
type selecting struct {
	namespace, object, labels *expr.Template
	where                     *expr.Program
	any                       bool
	// places are the fields of the relation with the line of each.
	places map[string]string
	// wanted is the number of labels in a complete selector.
	wanted int
}

func (s *selecting) selection(of *dsl.Subject) (dsl.Selection, error) {
	scope := expr.Scope{Subject: of}
	out := dsl.Selection{Namespace: of.Object.GetNamespace()}
	if s.any {
		out.Namespace = ""
	}
	var err error
	if s.namespace != nil {
		if out.Namespace, err = textOf(s.namespace, scope); err != nil || out.Namespace == "" {
			return nothing(), s.failed("namespace", err) // an empty namespace would select all namespaces
		}
	}
	if s.object != nil {
		name, err := textOf(s.object, scope)
		if err != nil {
			return out, s.failed("object", err)
		}
		out.Names = []string{name}
	}
	if s.labels != nil {
		if out.Labels, err = s.labelsOf(scope); err != nil || out.Labels == nil {
			return nothing(), s.failed("selector", err)
		}
	}
	if s.where != nil {
		out.Match = func(o *unstructured.Unstructured) (bool, error) {
			holds, err := s.where.Bool(expr.Scope{Subject: of, Vars: map[string]any{"object": o.Object}})
			return holds, s.failed("where", err)
		}
	}
	return out, nil
}

// failed returns the error of one of the relation's fields, with its place. A missing value is waited for if another related object
// may bring it. Any other is a failure: expressions that read the relation must not take it for a missing value of their own.
func (s *selecting) failed(field string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("evaluating %s (at %s): %w", field, s.places[field], err)
	if errors.Is(err, expr.ErrMissing) && !errors.Is(err, expr.ErrMissingRelated) {
		return errors.New(err.Error() + " (.? allows for a missing value)")
	}
	return err
}

// textOf renders a template that must be text. No value, or null, is the empty text, which is no object's name.
func textOf(t *expr.Template, s expr.Scope) (string, error) {
	value, err := t.Render(s)
	if err != nil {
		return "", err
	}
	if value == nil || value == expr.None {
		return "", nil
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("want text, found %s", s.Subject.Secrets.Shown(value))
	}
	return text, nil
}

// nothing returns a selection without objects.
func nothing() dsl.Selection { return dsl.Selection{Names: []string{}} }

// labelsOf returns the selector; nil if one of its values is missing, because the rest would select too much.
func (s *selecting) labelsOf(scope expr.Scope) (labels.Selector, error) {
	value, err := s.labels.Render(scope)
	if err != nil {
		return nil, err
	}
	tree, _ := value.(map[string]any)
	set := labels.Set{}
	for key, value := range tree {
		if value != nil {
			set[key] = plain.Text(value)
		}
	}
	if len(set) < s.wanted {
		return nil, nil
	}
	out, err := labels.ValidatedSelectorFromSet(set)
	if err != nil && scope.Subject.Secrets.Read {
		err = fmt.Errorf("%s is no value of a label", dsl.Unshown)
	}
	return out, err
}
