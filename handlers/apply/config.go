// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// childrenConfig is the configuration of apply: children by name. It includes children with faults, so that others
// can refer to them.
type childrenConfig map[string]*childConfig

// childConfig is the configuration of a child: the object itself, or options with the object under template.
type childConfig struct {
	options
	// whole is the whole value; nil if it is not a map.
	whole map[string]any
	// forEach is mistyped, so expressions have the variable item.
	mistypedEach bool
}

// options say how a child is kept. The doc tags are their reference.
type options struct {
	Template    templateConfig      `yaml:"template" required:"there is no child in here: want the child itself (apiVersion, kind, metadata, …), or options with the child under template" doc:"The child itself, whose values may have ${…}; or one expression that gives the whole object."`
	ForEach     form.Items          `yaml:"forEach" doc:"A list or a map, mostly an expression. There is a child for each element, with the variables item (also value), index and key. Absent: one child."`
	Key         form.ItemKey        `yaml:"key" doc:"For forEach: an expression that identifies an element by a text or a number, as in ${item.name}. Default: the element itself if it is a text or a number; in a map, its key."`
	Limit       int                 `yaml:"limit" min:"1" default:"1000" doc:"For forEach: the most elements. More of them is a final failure."`
	IncludeWhen form.Predicate      `yaml:"includeWhen" doc:"While it is false, the child is taken away, as onDelete says. With a variable of forEach it is asked for each element. Absent: the child is wanted."`
	ReadyWhen   form.Predicate      `yaml:"readyWhen" doc:"When the child is ready, for children that need it; the variable child is the live object. Absent: as soon as it is applied."`
	Ownership   dsl.Ownership       `yaml:"ownership" default:"owned" doc:"What ties the child to its owner. owned: an owner reference. labelled: a label, and a line in the owner's inventory, for a child in another namespace or in none. none: nothing; it is applied and forgotten."`
	Adopt       dsl.Adoption        `yaml:"adopt" default:"never" doc:"Whether an object that exists already is taken over as the child. never: no, and the handler fails. ifUnowned: if it has no owner."`
	OnDelete    dsl.DeletePolicy    `yaml:"onDelete" default:"delete" doc:"What becomes of a child that is not wanted any more, or whose owner is deleted. delete: it is deleted. orphan: it stays, without an owner. retain: it stays, for a later owner of this name."`
	DeleteOrder dsl.DeleteOrder     `yaml:"deleteOrder" default:"any" doc:"When the owner is deleted: any leaves the order to Kubernetes. reverse: the child goes before the owner, and after the children of this apply that need it; each is gone with all that belongs to it before the next one is deleted. Children with ownership: labelled go in this order in any case."`
	Drift       dsl.DriftPolicy     `yaml:"drift" default:"fields" doc:"What is put back when somebody else changes the child. fields: the fields of the template; what kubectl added to their lists and maps is removed. strict: also fields that the template does not have, whoever set them, but for Kubernetes itself and those under allow. ignore: nothing, as long as the child exists and its template is the same."`
	Allow       []string            `yaml:"allow" unique:"true" doc:"For drift: strict: field managers whose fields stay, by their full names, as in kubectl-rollout; managedFields of the child have them."`
	Update      dsl.UpdatePolicy    `yaml:"update" default:"inPlace" doc:"How the child gets what its changed template says. inPlace: it is changed. recreate: it is deleted, and created again when it is gone; its data is lost. onDelete: it stays as it is until somebody deletes it. Not for Secrets, unless inPlace."`
	OnImmutable dsl.ImmutablePolicy `yaml:"onImmutable" default:"fail" doc:"What to do if a field cannot be changed as the template says. fail: the child stays as it is, and the handler fails. recreate: the child is deleted, and created again when it is gone; its data is lost."`
	Rollout     *rolloutConfig      `yaml:"rollout" doc:"For forEach: how changed children are updated. Absent: all at once."`
}

// rolloutConfig is the configuration of rollout.
type rolloutConfig struct {
	MaxUnavailable shareConfig    `yaml:"maxUnavailable" required:"maxUnavailable is required: a whole number of at least 1, or a percentage from 1% to 100%" doc:"How many children may be unready at a time: a number, or a percentage as in 25%, rounded up, at least 1; or an expression that gives one of them."`
	Partition      portion        `yaml:"partition" doc:"How many children, the last ones, stay as they are, as in a StatefulSet: a whole number, or an expression that gives one. Default: 0."`
	Group          string         `yaml:"group" doc:"A name. Rollouts of one handler with the same group are one: maxUnavailable, which is the same in all, counts their children together. They are updated in the order of the children's names. Absent: a rollout of its own."`
	ReadyWhen      form.Predicate `yaml:"readyWhen" doc:"When an updated child is ready; the variable child is the live object. Default: the child's own readyWhen, else ready(child)."`
}

const bothForms = "the child itself (apiVersion, kind, metadata, …), or options with the child under template"

// templateKey is the key of the object in the long form.
const templateKey = "template"

// keywords returns the options of the long form that cannot be fields of an object.
func keywords() []string {
	return slices.DeleteFunc(form.Fields(reflect.TypeFor[options]()), func(name string) bool {
		return name == "key" || name == "limit" || name == templateKey
	})
}

// ReadForm reads the children.
func (c *childrenConfig) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	*c = childrenConfig{}
	if unnamed(d, at, n) {
		d.FaultAt(n, at, "want children by names of your choice, as in {web: {apiVersion: …, kind: …}}; found a child without such a name")
		return false
	}
	return d.Entries(at, n, func(name string, at form.Path, value *yaml.Node) {
		one := &childConfig{}
		one.read(d, at, value)
		(*c)[name] = one
	})
}

// unnamed reports whether the value is an object instead of children by name.
func unnamed(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	plain, _ := d.Plain(at, n)
	whole, _ := plain.(map[string]any)
	_, version := whole["apiVersion"].(string)
	_, kind := whole["kind"].(string)
	return version || kind
}

// DescribeForm describes both forms of a child.
func (c *childrenConfig) DescribeForm(d *form.Describer) *form.Schema {
	itself, long := objectSchema(), d.Struct(reflect.TypeFor[options]())
	itself.Title, long.Title = "the child itself", "options"
	itself.Not = form.OneRequired(append(keywords(), "status")...)
	return &form.Schema{
		Type: "object", MinProperties: 1, AdditionalProperties: &form.Schema{OneOf: []*form.Schema{long, itself}},
	}
}

// objectSchema describes the template of an object, without the fields of its kind.
func objectSchema() *form.Schema {
	text := func(doc string) *form.Schema { return &form.Schema{Type: "string", MinLength: 1, Description: doc} }
	return &form.Schema{
		Type: "object", Required: []string{"apiVersion", "kind", "metadata"}, Not: form.OneRequired("status"),
		Properties: map[string]*form.Schema{
			"apiVersion": text("The API group and version of its kind, as in apps/v1."),
			"kind":       text("Its kind, as in Deployment."),
			"metadata": {Description: "Its name at least; also its namespace, labels and annotations.", OneOf: []*form.Schema{
				{Type: "object", Required: []string{"name"}, Properties: map[string]*form.Schema{"name": text("Its name, as in ${self.metadata.name}-web.")}},
				{Type: "string", MinLength: 1},
			}},
		},
	}
}

func (c *childConfig) read(d *form.Decoder, at form.Path, n *yaml.Node) {
	plain, _ := d.Plain(at, n)
	whole, isMap := plain.(map[string]any)
	if !isMap {
		d.FaultAt(n, at, "want a map: %s", bothForms)
		return
	}
	c.whole = whole
	if !c.itself() {
		d.Struct(at, n, &c.options, nil)
		c.mistypedEach = !c.has("forEach") && d.Faulty(at.Key("forEach"))
		return
	}
	for _, option := range keywords() {
		if c.has(option) {
			d.Fault(at.Key(option), "is an option, beside which the child itself stands under %s", templateKey)
			return
		}
	}
	c.Template.value = whole
}

// itself reports whether the value is the object itself.
func (c *childConfig) itself() bool { return c.has("apiVersion") || c.has("kind") }

// has reports whether a key has a value, faulty or not.
func (c *childConfig) has(key string) bool { return has(c.whole, key) }

// ReadForm reads the fields of a rollout.
func (r *rolloutConfig) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		d.FaultAt(n, at, "want a map, as in {maxUnavailable: 1}, found %s", form.Found(n))
		return false
	}
	return d.Struct(at, n, r, nil)
}

// DescribeForm describes the fields of a rollout.
func (r *rolloutConfig) DescribeForm(d *form.Describer) *form.Schema {
	return d.Struct(reflect.TypeFor[rolloutConfig]())
}

// templateConfig is the template of a child; nil if there is none.
type templateConfig struct{ value any }

// ReadForm accepts any value; the kind defines its form.
func (t *templateConfig) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	t.value, _ = d.Plain(at, n)
	return true
}

// DescribeForm describes an object, or an expression that gives one.
func (t *templateConfig) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "map or ${…}", OneOf: []*form.Schema{objectSchema(), form.WithExpression()}}
}

// portion is a number of children, or an expression that gives one. Its value is nil if it is not set.
type portion struct{ value any }

// ReadForm accepts a number or an expression.
func (p *portion) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	value, _ := d.Plain(at, n)
	number, isNumber := value.(int64)
	text, isText := value.(string)
	if isNumber && number >= 0 || isText && strings.Contains(text, "${") {
		p.value = value
		return true
	}
	d.FaultAt(n, at, "want a whole number of at least 0, or an expression that gives one, found %s", form.Found(n))
	return false
}

// DescribeForm describes the number and the expression.
func (p *portion) DescribeForm(*form.Describer) *form.Schema {
	least := 0.0
	return &form.Schema{Called: "whole number or ${…}", OneOf: []*form.Schema{{Type: "integer", Minimum: &least}, form.WithExpression()}}
}

// share is a number of children, or a percentage of them.
type share struct {
	most    int64
	percent bool
}

var percentage = regexp.MustCompile(`^([0-9]{1,3})%$`)

// shareOf returns the share that a value stands for: a whole number of at least 1, or a percentage from 1% to 100%.
func shareOf(value any) (out share, valid bool) {
	switch value := value.(type) {
	case int64:
		out.most = value
	case string:
		if match := percentage.FindStringSubmatch(value); match != nil {
			out.most, _ = strconv.ParseInt(match[1], 10, 64)
			out.percent = true
		}
	}
	return out, out.most >= 1 && (!out.percent || out.most <= 100)
}

// of returns how many of the given number of children the share is, at least 1.
func (s share) of(all int) int {
	if !s.percent {
		return int(min(s.most, math.MaxInt32))
	}
	return max((all*int(s.most)+99)/100, 1)
}

// shareConfig is the configuration of a share, which may be an expression.
type shareConfig struct{ value any }

// ReadForm accepts a number, a percentage, or an expression.
func (s *shareConfig) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	s.value, _ = d.Plain(at, n)
	text, _ := s.value.(string)
	if _, valid := shareOf(s.value); valid || strings.Contains(text, "${") {
		return true
	}
	d.FaultAt(n, at, wantShare+", found %s", form.Found(n))
	return false
}

const wantShare = "want a whole number of at least 1, or a percentage from 1%% to 100%%"

// DescribeForm describes the three forms.
func (s *shareConfig) DescribeForm(*form.Describer) *form.Schema {
	least := 1.0
	return &form.Schema{Called: "whole number, percentage or ${…}", OneOf: []*form.Schema{{Type: "integer", Minimum: &least}, {Type: "string", Pattern: percentage.String()}, form.WithExpression()}}
}
