// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

var (
	_ form.Form = (*matches)(nil)
	_ form.Form = (*handler)(nil)
	_ form.Form = (*schedule)(nil)
	_ form.Form = (*activities)(nil)
	_ form.Form = (*step)(nil)
)

// matches are conditions on labels or annotations, in the order of the document.
type matches []dsl.Match

// presence is a condition on whether a key exists.
type presence struct {
	Exists *bool `yaml:"exists" required:"true" doc:"true: the key must be there, with any value. false: it must not be there."`
}

// ReadForm reads the conditions.
func (m *matches) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return d.Entries(p, n, func(name string, at path, value *yaml.Node) {
		match := dsl.Match{Key: name}
		if value.Kind == yaml.MappingNode {
			var key presence
			d.Value(at, value, &key)
			match.Op = dsl.Exists
			if key.Exists != nil && !*key.Exists {
				match.Op = dsl.Absent
			}
		} else {
			d.Value(at, value, &match.Value)
		}
		*m = append(*m, match)
	})
}

// DescribeForm describes the conditions.
func (m *matches) DescribeForm(d *form.Describer) *form.Schema {
	value := &form.Schema{OneOf: []*form.Schema{{Type: "string"}, d.Of(reflect.TypeFor[presence]())}}
	return &form.Schema{Called: "map of text or {exists: …}", Type: "object", AdditionalProperties: value}
}

// ReadForm fills a handler. Its action is the one key that is not a field and that the registry has. The action
// defines the form of its value.
func (h *handler) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	ok := oneAction(d, p, n, h, "handler", &h.doing)
	for i := range d.Faults {
		if d.Faults[i].At == p.Key("old") && hasNumberOrMap(n, "old") { // the fault is about the value: old itself is a known field
			d.Faults[i].Message += " (" + inKopf("old") + ")"
		}
	}
	return ok
}

// hasNumberOrMap reports whether a field of a map is a number or a map.
func hasNumberOrMap(n *yaml.Node, field string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == field {
			return slices.Contains([]string{"!!int", "!!float", "!!map"}, n.Content[i+1].ShortTag())
		}
	}
	return false
}

// DescribeForm describes a handler.
func (h *handler) DescribeForm(d *form.Describer) *form.Schema {
	return withAction(d, reflect.TypeFor[handler](), anyAction)
}

// schedule is a list of handlers that run for the resource as a whole.
type schedule []handler

const notForSchedule = "is not for a schedule, which has no one object"

// ReadForm fills a resource.
func (r *resource) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return d.Struct(p, n, r, &form.Others{Elsewhere: removed})
}

// DescribeForm describes a resource.
func (*resource) DescribeForm(d *form.Describer) *form.Schema {
	return d.Struct(reflect.TypeFor[resource]())
}

// removed says what replaces an option of resources that earlier versions had; empty for other words.
func removed(name string) string {
	if name == "observedGeneration" {
		return "declare status.observedGeneration in the schema; the engine sets it"
	}
	return ""
}

// ReadForm reads handlers without the options that schedules cannot have.
func (s *schedule) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return barring(d, p, n, (*[]handler)(s), dsl.ScheduleHandler, notForSchedule)
}

// barring reads handlers of a kind; why says that this kind cannot have an option.
func barring(d *form.Decoder, p path, n *yaml.Node, into *[]handler, kind dsl.HandlerKind, why string) bool {
	ok := d.Value(p, n, into)
	for i := range *into {
		for _, name := range dsl.OptionsNotFor(kind) {
			if at := p.Index(i).Key(name); d.Has(at) {
				d.FaultKey(at, "%s", why)
			}
		}
	}
	return ok
}

// DescribeForm describes the handlers of a schedule.
func (s *schedule) DescribeForm(d *form.Describer) *form.Schema {
	out := withAction(d, reflect.TypeFor[handler](), wholeAction)
	for _, name := range dsl.OptionsNotFor(dsl.ScheduleHandler) {
		delete(out.Properties, name)
	}
	out.Properties[steps].Items = withAction(d, reflect.TypeFor[step](), wholeAction)
	out.AllOf = append(out.AllOf, form.OneRequired("every", "pause", "cron"))
	return &form.Schema{Type: "array", Items: out, MinItems: 1}
}

// activities are a list of activities of the operator.
type activities []handler

const notForActivity = "is not for startup, cleanup and probes, which have no object"

// ReadForm reads handlers without the options that activities cannot have.
func (a *activities) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return barring(d, p, n, (*[]handler)(a), dsl.ActivityHandler, notForActivity)
}

// DescribeForm describes activities.
func (a *activities) DescribeForm(d *form.Describer) *form.Schema {
	return listOf(d, dsl.ActivityHandler)
}

// probes are a list of probes of the process.
type probes []handler

const notForProbe = "is not for probes, which are asked once each time, and have no object"

// ReadForm reads handlers without the options that probes cannot have.
func (a *probes) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return barring(d, p, n, (*[]handler)(a), dsl.ProbeHandler, notForProbe)
}

// DescribeForm describes probes.
func (a *probes) DescribeForm(d *form.Describer) *form.Schema { return listOf(d, dsl.ProbeHandler) }

// listOf describes a list of handlers of a kind that has no object.
func listOf(d *form.Describer, kind dsl.HandlerKind) *form.Schema {
	out := withAction(d, reflect.TypeFor[handler](), func(a actions.Action) bool { return !a.OneObject && !a.Objects })
	for _, name := range dsl.OptionsNotFor(kind) {
		delete(out.Properties, name)
	}
	out.OneOf = slices.DeleteFunc(out.OneOf, func(s *form.Schema) bool { return slices.Equal(s.Required, []string{steps}) })
	return &form.Schema{Type: "array", Items: out, MinItems: 1}
}

// oneAction fills a struct that has fields and one action, or steps if it has such a field.
func oneAction(d *form.Decoder, p path, n *yaml.Node, out any, what string, took *doing) bool {
	in, strayed := d.With.(*input), false
	take := func(name string, at path, value *yaml.Node) {
		if took.action != "" {
			d.FaultKey(at, "a %s has one action, this one has %s already", what, took.action)
			return
		}
		took.action = name
		if config := in.config(name); d.Filled(at, value, config) {
			took.config = config
		}
	}
	known := in.known()
	others := &form.Others{Names: known, Take: take, Strayed: func() { strayed = true }}
	switch out.(type) {
	case *partDocument:
		others.Elsewhere = elsewhere
	case *handler:
		others.Elsewhere = inKopf
	}
	ok := d.Struct(p, n, out, others)
	if slices.Contains(form.Fields(reflect.TypeOf(out).Elem()), steps) && d.Has(p.Key(steps)) {
		if took.action != "" {
			d.FaultKey(p.Key(steps), "a %s has one action or steps, this one has %s already", what, took.action)
		}
		return ok
	}
	if ok && took.action == "" && !strayed {
		d.Missing(p, steps, "a %s has an action (%s)", what, words.Hint("", known))
	}
	return ok
}

// inKopf says what an option of kopf's handlers is here; empty for other words.
func inKopf(name string) string {
	switch name {
	case "value", "new", "old":
		return "kopf's " + name + " is a condition here, as in when: self.spec.size == 3 or when: old.spec.size == 3"
	case "interval", "sharp":
		return "use pause; with kopf's sharp=True use every"
	case "optional":
		return "kopf's optional=True is finalizer: false"
	case "param":
		return "kopf's param is with"
	}
	return ""
}

// elsewhere says that what a part cannot have is the handler's that uses it.
func elsewhere(name string) string {
	if slices.Contains(form.Fields(reflect.TypeFor[handler]()), name) {
		return "the handler that uses the part has it"
	}
	return ""
}
