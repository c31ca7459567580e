// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
	text "github.com/handwerk-dev/handwerk/dsl/source"
)

var (
	_ form.Form = (*objects)(nil)
	_ form.Form = (*step)(nil)
	_ form.Form = (*moment)(nil)
	_ form.Form = (*condition)(nil)
)

// objects are objects, and names of files with objects.
type objects []source

// source is one object, or the name of a file.
type source struct {
	object map[string]any
	file   string
	at     form.Path
}

// ReadForm reads an object, the name of a file, or a list of these.
func (o *objects) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind != yaml.SequenceNode {
		return o.one(d, at, n)
	}
	ok := true
	for i, element := range n.Content {
		ok = o.one(d, at.Index(i), element) && ok
	}
	return ok
}

func (o *objects) one(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.MappingNode:
		value, ok := d.Plain(at, n)
		if !ok || !plainTo(d, at, n) {
			return false
		}
		tree := value.(map[string]any)
		for _, key := range []string{"apiVersion", "kind", "metadata"} {
			if tree[key] == nil {
				d.Missing(at, key, "an object needs %s", key)
				return false
			}
		}
		*o = append(*o, source{object: tree, at: at})
	case form.IsText(n) && n.Value != "":
		*o = append(*o, source{file: n.Value, at: at})
	default:
		d.FaultAt(n, at, "want an object, or the name of a file with objects, found %s", form.Found(n))
		return false
	}
	return true
}

// plainTo refuses words that are a boolean for kubectl and a text here, as an object would be another one there.
func plainTo(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if value, is := text.Boolean(n); is {
		d.FaultAt(n, at, "kubectl reads %s as %v: write %[2]v, or put it in quotes", n.Value, value)
		return false
	}
	ok := true
	for i, each := range n.Content {
		below := at.Index(i)
		if n.Kind == yaml.MappingNode {
			below = at.Key(n.Content[i-i%2].Value)
		}
		ok = plainTo(d, below, each) && ok
	}
	return ok
}

// patches is plainTo for what a step merges into objects.
func patches(d *form.Decoder, at form.Path, step *yaml.Node) bool {
	for i := 0; i < len(step.Content); i += 2 {
		if step.Content[i].Value == "patch" {
			return plainTo(d, at.Key("patch"), step.Content[i+1])
		}
	}
	return true
}

// DescribeForm describes all that ReadForm reads.
func (o *objects) DescribeForm(*form.Describer) *form.Schema {
	one := []*form.Schema{
		{Type: "string", MinLength: 1},
		{Type: "object", Required: []string{"apiVersion", "kind", "metadata"}},
	}
	return &form.Schema{Called: "object, file, or list of these", OneOf: append(one, &form.Schema{Type: "array", Items: &form.Schema{OneOf: one}})}
}

// moment is a time on the clock of a case. Its zero value is the beginning of the clock.
type moment time.Time

// latest is the year in which no clock of a case may begin: timers end some decades after it.
const latest = 2200

// ReadForm reads a time with its zone.
func (m *moment) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	read, err := time.Parse(time.RFC3339, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.FaultAt(n, at, "want a time as in 2026-03-29T01:30:00+01:00, found %s", form.Found(n))
		return false
	}
	if year := read.UTC().Year(); year < 2000 || year >= latest {
		d.FaultAt(n, at, "want a time from 2000 to %d", latest-1)
		return false
	}
	*m = moment(read)
	return true
}

// DescribeForm describes the text.
func (m *moment) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "time", Type: "string", Pattern: `^2[01]\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`,
		PatternErrorMessage: "want a time as in 2026-03-29T01:30:00+01:00"}
}

// modifiers are the fields of a step that say more about another one.
var modifiers = map[string][]string{
	"within":  {"until", "ready"},
	"refused": {"apply", "create", "patch", "delete"},
	"warned":  {"apply", "create", "patch", "delete"},
}

// fields are a step without its own form.
type fields step

// verbs are what a step can do.
func verbs() []string {
	return slices.DeleteFunc(form.Fields(reflect.TypeFor[fields]()), func(name string) bool { return modifiers[name] != nil })
}

// ReadForm reads a map with one of the verbs, or the word restart.
func (s *step) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	s.at = at
	if form.IsText(n) && n.Value == "restart" {
		s.Restart = true
		return true
	}
	if !d.Struct(at, n, (*fields)(s), nil) || !patches(d, at, n) {
		return false
	}
	var found []string
	for _, name := range verbs() {
		if d.Has(at.Key(name)) {
			found = append(found, name)
		}
	}
	switch {
	case d.Faulty(at):
		return false
	case len(found) == 0:
		d.FaultAt(n, at, "a step does one of %s", strings.Join(verbs(), ", "))
		return false
	case len(found) > 1:
		d.FaultKey(at.Key(found[1]), "a step does one thing; write %s as a step of its own", found[1])
		return false
	}
	if found[0] == "restart" && !s.Restart {
		d.FaultKey(at.Key("restart"), "want true")
		return false
	}
	for name, with := range modifiers {
		if d.Has(at.Key(name)) && !slices.Contains(with, found[0]) {
			d.FaultKey(at.Key(name), "%s is for %s only", name, strings.Join(with, ", "))
			return false
		}
	}
	return true
}

// DescribeForm describes both.
func (s *step) DescribeForm(d *form.Describer) *form.Schema {
	out := d.Struct(reflect.TypeFor[fields]())
	for _, name := range verbs() {
		out.OneOf = append(out.OneOf, &form.Schema{Required: []string{name}})
	}
	return &form.Schema{OneOf: []*form.Schema{{Type: "string", Enum: []string{"restart"}}, out}}
}

// long is a condition with more than its status.
type long struct {
	Status  status `yaml:"status" doc:"The status of the condition."`
	Reason  string `yaml:"reason" doc:"The reason of the condition."`
	Message string `yaml:"message" doc:"A part of its message."`
}

// status is that of a condition. YAML reads True as a boolean.
type status string

const wantStatus = "want True, False or Unknown"

// ReadForm reads the word, or a boolean.
func (s *status) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		for _, word := range []string{"True", "False", "Unknown"} {
			if strings.EqualFold(n.Value, word) {
				*s = status(word)
				return true
			}
		}
	}
	d.FaultAt(n, at, "%s, found %s", wantStatus, form.Found(n))
	return false
}

// DescribeForm describes both.
func (s *status) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "True, False, Unknown", OneOf: []*form.Schema{{Type: "string", Enum: []string{"True", "False", "Unknown"}}, {Type: "boolean"}}}
}

// ReadForm reads a status, absent, or a map with a reason, too.
func (c *condition) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode {
		var more long
		ok := d.Struct(at, n, &more, nil)
		c.Status, c.Reason, c.Message = string(more.Status), more.Reason, more.Message
		return ok
	}
	if n.Value == absent {
		c.absent = true
		return true
	}
	var word status
	ok := word.ReadForm(d, at, n)
	c.Status, c.only = string(word), true
	return ok
}

// DescribeForm describes all three.
func (c *condition) DescribeForm(d *form.Describer) *form.Schema {
	return &form.Schema{Called: "True, False, Unknown, absent or map", OneOf: []*form.Schema{
		{Type: "string", Enum: []string{"True", "False", "Unknown", absent}}, {Type: "boolean"}, d.Struct(reflect.TypeFor[long]()),
	}}
}

// absent stands for something that is not there.
const absent = "absent"

// allows reports whether a number is one that is expected.
func (c counted) allows(n int) bool {
	switch {
	case c.Times != nil:
		return n == *c.Times
	case c.AtMost != nil:
		return n <= *c.AtMost
	default:
		return n > 0
	}
}

// String says which numbers are expected.
func (c counted) String() string {
	times := func(n int) string {
		if n == 1 {
			return "once"
		}
		return strconv.Itoa(n) + " times"
	}
	switch {
	case c.Times != nil && *c.Times == 0:
		return "not at all"
	case c.Times != nil:
		return "exactly " + times(*c.Times)
	case c.AtMost != nil:
		return "at most " + times(*c.AtMost)
	default:
		return "at least once"
	}
}
