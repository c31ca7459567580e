// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

type index struct {
	Name        string           `yaml:"name" required:"true" doc:"The name in expressions: indexes.<name>. Unique within the operator; letters, digits and _."`
	Resource    dsl.ResourceName `yaml:"resource" required:"true" doc:"The resource whose objects are indexed, in kubectl's spelling. It is watched in the operator's scope, even if it has no handler."`
	Key         form.Expression  `yaml:"key" required:"true" mistaken:"path,field,fields,by,on" doc:"An expression over self that gives the key of the object's value, or a list of keys: text, a number, true or false. Null, or no value, as of self.spec.?class, is no key."`
	Value       form.Expression  `yaml:"value" required:"true" mistaken:"object,entry,data,result" doc:"An expression over self that gives the value under the key: anything that JSON can hold. An absent optional value adds nothing. Values take memory, so keep them small."`
	Selector    *selector        `yaml:"selector" min:"1" doc:"Which objects are indexed; the API server selects. Absent: all."`
	When        form.Predicate   `yaml:"when" doc:"While it is false, the index has nothing of the object. Variable: self. Absent: it always has."`
	Labels      matches          `yaml:"labels" min:"1" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations matches          `yaml:"annotations" min:"1" doc:"Annotations that the object must have, in the form of labels."`
}

// index adds index i of a part.
func (l *loader) index(op *dsl.Operator, p *part, i int) {
	c, at := &compiling{p, l, &dsl.Resource{}, l.lets}, path("indexes").Index(i)
	given := &p.form.Indexes[i]
	made := &indexing{}
	x := op.Index(given.Name, given.Resource.String(), made.entries)
	l.places[x], made.of, made.secrets = place{p, at}, x, dsl.Secrets{Read: x.OfSecrets()}
	c.exists(at.Key("resource"), given.Resource)
	if given.Selector != nil {
		c.selector(at.Key("selector"), given.Selector)
	}
	h := &making{handler: &handler{When: given.When, Labels: given.Labels, Annotations: given.Annotations}}
	c.matchKeys(at, h)
	var sure []string
	if when := c.expression(at.Key("when"), string(given.When), (*expr.Compiler).Predicate, check.Program); when != nil {
		x.When, sure = when.Predicate("when", nil), check.Sure(when)
	}
	made.key = c.expression(at.Key("key"), string(given.Key), (*expr.Compiler).Alone, func(p *expr.Program, s shape.Schemas) error {
		s.Sure = sure
		return check.Key(p, s)
	})
	made.value = c.expression(at.Key("value"), string(given.Value), (*expr.Compiler).Alone, func(p *expr.Program, s shape.Schemas) error {
		s.Sure = sure
		return check.Program(p, s)
	})
	if made.value != nil {
		x.Shape = func(self *spec.Schema) *spec.Schema {
			return check.Result(made.value, shape.Schemas{Self: shape.Shape{Schema: self}})
		}
	}
	x.LabelSelector, x.FieldSelector, x.Labels, x.Annotations = c.out.LabelSelector, c.out.FieldSelector, given.Labels, given.Annotations
	x.Checks, x.Exists = c.out.Checks, c.out.Exists
}

// objectAlone are the variables that indexes do not have.
var objectAlone = func() map[string]string {
	out := map[string]string{}
	for _, name := range []string{expr.Old, expr.Diff, expr.Cause, expr.Event, expr.Params, expr.Now, expr.Children, expr.Related, expr.Indexes, expr.Handlers} {
		out[name] = "is not there in an index, which goes by the object alone"
	}
	return out
}()

// expression compiles an expression over an object. A missing or faulty expression gives nil. It is checked again
// when schemas are known; only then can it lead to warnings.
func (c *compiling) expression(
	at path, text string, compile func(*expr.Compiler, string) (*expr.Program, error), holds func(*expr.Program, shape.Schemas) error,
) *expr.Program {
	if text == "" {
		return nil
	}
	compiler, err := c.compiler()
	if err != nil {
		c.Fault(at, "%v", err)
		return nil
	}
	program, err := compile(compiler, text)
	if err != nil {
		c.unfit(at, at, expr.Faults(nil, err)...)
		return nil
	}
	find := func(s shape.Schemas) []error {
		s.Without = objectAlone
		return expr.Faults(nil, holds(program, s))
	}
	if found := find(shape.Schemas{}); len(found) > 0 { // faults that do not depend on the schema
		c.unfit(at, at, found...)
		return nil
	}
	c.check(at, at, find)
	return program
}

// matchKeys checks the labels and annotations that an object must have, and returns their paths.
func (c *compiling) matchKeys(at path, h *making) (reads []dsl.Path) {
	for _, m := range h.Labels {
		c.labelKey(at.Key("labels").Key(m.Key), m.Key)
		c.labelValue(at.Key("labels").Key(m.Key), m.Value)
		reads = append(reads, dsl.Path{"metadata", "labels", m.Key})
	}
	for _, m := range h.Annotations {
		c.labelKey(at.Key("annotations").Key(m.Key), strings.ToLower(m.Key)) // as the API server does
		reads = append(reads, dsl.Path{"metadata", "annotations", m.Key})
	}
	return reads
}

// indexing computes the entries of an object.
type indexing struct {
	of         *dsl.IndexSpec
	key, value *expr.Program
	secrets    dsl.Secrets
}

func (x *indexing) entries(o *unstructured.Unstructured) ([]dsl.Entry, error) {
	scope := expr.Scope{Subject: &dsl.Subject{Object: o, Prefix: x.of.Prefix(), Secrets: x.secrets}}
	key, err := x.key.Eval(scope)
	if err != nil {
		return nil, fmt.Errorf("evaluating key: %w", err)
	}
	keys, several := key.([]any)
	if !several {
		keys = []any{key}
	}
	var out []dsl.Entry
	seen := map[any]bool{}
	for _, key := range keys {
		switch key.(type) {
		case []any, map[string]any: // which is no key, and the index says so
		default:
			if key == nil || key == expr.None || seen[key] {
				continue
			}
			seen[key] = true
		}
		out = append(out, dsl.Entry{Key: key})
	}
	if len(out) == 0 {
		return nil, nil
	}
	value, err := x.value.Eval(scope)
	if err != nil {
		return nil, fmt.Errorf("evaluating value: %w", err)
	}
	if value == expr.None {
		return nil, nil
	}
	for i := range out {
		out[i].Value = value
	}
	return out, nil
}
