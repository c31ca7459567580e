// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// useKey is the key under which a part stands for an action, and withKey that of the values of its parameters.
const (
	useKey  = "use"
	withKey = "with"
)

// useDoc describes what stands under the key.
const useDoc = "A part, which stands for the action: what it does is in a file of its own, with parameters."

// use is a part that stands for an action.
type use struct {
	File string         `yaml:"file" required:"true" doc:"The file of the part, as a path from the directory of the configuration, as in parts/web.yaml. It cannot lead out of this directory."`
	As   string         `yaml:"as" doc:"A name that stands before those of the children that the part makes: with as: front, its child web is children.front_web in the resource. For a part with children that is used several times in a resource. Absent: they have their own names."`
	With map[string]any `yaml:"with" min:"1" doc:"The values of the part's parameters: plain values, or expressions, which are worked out here, where the part is used. Absent: all have their defaults."`

	at path
	// piece is the part; nil if it has a fault.
	piece *piece
}

// ReadForm reads the use, and notes it for the loader, which reads the part.
func (u *use) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	u.at = p
	in := d.With.(*input)
	in.uses = append(in.uses, u)
	if form.IsText(n) && n.Value != "" {
		d.FaultAt(n, p, "want a map, as in {file: parts/web.yaml}, found %s", form.Found(n))
		return false
	}
	return d.Struct(p, n, u, nil)
}

// DescribeForm describes the use.
func (u *use) DescribeForm(d *form.Describer) *form.Schema { return d.Struct(reflect.TypeFor[use]()) }

// input is what the forms of a document need besides its text, and the uses of parts that were found in it.
type input struct {
	registry *actions.Registry
	uses     []*use
}

// config returns a value for the configuration of an action.
func (in *input) config(action string) any {
	if action == useKey {
		return &use{}
	}
	known, _ := in.registry.LookupAction(action)
	return known.Config()
}

// known are the keys that can say what a handler does.
func (in *input) known() []string { return append(in.registry.Actions(), useKey) }

// content returns what is done in the end: of a part that stands for an action, its action or its steps.
func content(d *doing, steps []step) (*doing, []step) {
	if u, is := d.config.(*use); is && u.piece != nil && len(steps) == 0 {
		return content(&u.piece.own.doing, u.piece.own.Steps)
	}
	return d, steps
}

// undone reports whether it is not known what is done, because of a fault.
func (d *doing) undone() bool { return d.action == "" || d.action == useKey }

// used builds the code of a part; nil if it has a fault.
func (w *watched) used(at path, h *making, u *use) *actions.Built {
	if u.piece == nil {
		return nil // its fault is reported
	}
	if w.Has(at.Key(withKey)) {
		w.FaultKey(at.Key(withKey), "is for call: the values of a part's parameters stand under use")
	}
	if message := h.misuse(u); message != "" {
		w.Fault(u.at.Key("file"), "%s", message)
		return nil
	}
	inner, of, inside := *w, *h.handler, *h
	inner.part = u.piece.part
	inner.lets = w.arguments(u, h.names, h.around()).WithChildren(w.childNames(u))
	inner.lets = inner.letsAt("", u.piece.own.Let, false, h.around(), h.names...)
	of.With, of.doing, of.Steps = u.piece.own.With, u.piece.own.doing, u.piece.own.Steps
	inside.handler = &of
	built := inner.action("", &inside)
	inside.handler = h.handler
	*h = inside
	return built
}

// childNames returns the names in the resource of the children that a part makes, by their names in the part.
func (w *watched) childNames(u *use) map[string]string {
	out := map[string]string{}
	for _, name := range w.loader.childrenOf(u.piece) {
		out[name] = w.lets.ChildName(u.prefix() + name)
	}
	switch {
	case u.As == "":
	case !dsl.IsIdentifier(u.As):
		w.Fault(u.at.Key("as"), "%q is no name for children: want letters, digits and _, as in front", u.As)
	case len(out) == 0:
		w.FaultKey(u.at.Key("as"), "is for parts that make children, and this one makes none")
	}
	return out
}

// prefix stands before the names of the part's children.
func (u *use) prefix() string {
	if u.As == "" || !dsl.IsIdentifier(u.As) {
		return ""
	}
	return u.As + "_"
}

// childrenOf returns the names of the children that a part makes, with those of the parts that it uses, as its expressions
// know them.
func (l *loader) childrenOf(p *piece) (out []string) {
	all := []*doing{&p.own.doing}
	for i := range p.own.Steps {
		all = append(all, &p.own.Steps[i].doing)
	}
	for _, does := range all {
		if u, is := does.config.(*use); is {
			if u.piece != nil {
				for _, name := range l.childrenOf(u.piece) {
					out = append(out, u.prefix()+name)
				}
			}
			continue
		}
		if action, found := l.registry.LookupAction(does.action); found && action.Children != nil && does.config != nil {
			out = append(out, action.Children(does.config)...)
		}
	}
	return out
}

// misuse says why a part cannot stand where it is used; empty if it can.
func (h *making) misuse(u *use) string {
	switch _, steps := content(&u.piece.own.doing, u.piece.own.Steps); {
	case len(steps) == 0:
		return ""
	case h.active():
		return "the part has steps, which are not for startup, cleanup and probes"
	case h.oneStep:
		return "the part has steps, so it can stand for the action of a handler, and not for a step"
	}
	return ""
}
