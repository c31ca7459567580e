// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// action builds the handler's code; nil if it has a fault.
func (w *watched) action(at path, h *making) *actions.Built {
	if len(h.Steps) > 0 {
		return w.steps(at, h)
	}
	if u, is := h.config.(*use); is {
		return w.used(at, h, u)
	}
	return w.single(at, h)
}

// single builds the code of one action of the registry; nil if it has a fault.
func (w *watched) single(at path, h *making) *actions.Built {
	action, found := w.loader.registry.LookupAction(h.action)
	if found && action.OneObject && h.whole() {
		w.Fault(at.Key(h.action), "%s", map[bool]string{true: notForActivity, false: notForSchedule}[h.active()])
		return nil
	}
	if found && h.active() && action.Objects {
		w.Fault(at.Key(h.action), "%s", notForActivity)
		return nil
	}
	if !found || h.config == nil || h.With == nil && w.Has(at.Key("with")) {
		return nil
	}
	build := actions.Build{Registry: w.loader.registry, Params: h.With, Resource: w.out.Name, ID: h.ID, ResourceWide: h.whole(), OperatorWide: h.active(), Daemon: h.kind == dsl.DaemonHandler, Admission: h.kind == dsl.AdmissionHandler}
	build.AtDeletion = len(h.Causes) > 0 && !slices.ContainsFunc(h.Causes, func(c dsl.Cause) bool { return c != dsl.Delete })
	build.NoFinalizer, build.Restores = h.noFinalizer(), h.restores
	build.Always = h.level && !h.partial()
	build.Siblings, build.Vars, build.Lets, build.Reported = w.siblings, h.vars, w.lets, h.state != ""
	build.Without = without(h)
	build.IncludeWhen, build.Kept = h.include, w.out.Kept()
	built, err := action.Build(build, h.config)
	w.unfit(at, at.Key(h.action), err)
	if err != nil {
		return nil
	}
	if h.codeless(built) {
		w.Fault(at.Key(h.action), "the action made no handler")
		return nil
	}
	w.placeAsks(at, built.Asks)
	w.declare(at, h, built)
	w.params(at.Key("with"), h)
	return &built
}

// params checks parameters that have no expression, in case one was meant. The action checks the others.
func (c *compiling) params(at path, h *making) {
	if h.With == nil {
		return
	}
	compiler, err := c.compiler(h.vars...)
	if err != nil {
		return // the faults of expressions are reported already
	}
	if t, err := compiler.Template(h.With); err == nil && len(t.Programs()) == 0 {
		c.check(at, at, func(s shape.Schemas) []error { return check.Template(t, s, nil) })
	}
}

// declare adds a handler's children, checks and kinds to the resource.
func (w *watched) declare(at path, h *making, built actions.Built) {
	w.out.OwnsKind(built.Owns...)
	if h.entries != nil {
		h.entries.Makers = append(h.entries.Makers, built.Makers...)
		h.entries.Patches = append(h.entries.Patches, built.Patches...)
	}
	for _, child := range built.Children {
		on := place{w.part, at.Key(h.action).Key(w.lets.PartName(child.Name))}
		if h.vars != nil {
			child.List, child.Object = true, "" // there is one child for each entry
		}
		added, ok := w.children.add(on, h, child)
		if added {
			w.out.Makes = append(w.out.Makes, child)
		}
		if !ok {
			continue
		}
		if h.entries != nil {
			h.entries.Children = append(h.entries.Children, child.Name)
		}
		w.children.keep(on, h, child)
	}
	for _, find := range built.Checks {
		w.check(at, at.Key(h.action), func(s shape.Schemas) []error {
			s.Without, s.Sure, s.Params = without(h), slices.Concat(h.sure, w.booked(h)), given(h)
			return find(h.within(s))
		})
	}
}

// given returns the names of a handler's parameters; nil if they are not known.
func given(h *making) map[string]bool {
	if h.kind == dsl.AdmissionHandler {
		return nil // its parameters are an object
	}
	out := map[string]bool{}
	for name := range h.With {
		out[name] = true
	}
	return out
}

// partial reports whether the handler's filters may exclude objects.
func (h *making) partial() bool {
	return h.partly || h.When != "" || len(h.Labels)+len(h.Annotations) > 0
}

// without returns the variables that the handler's expressions cannot have.
func without(h *making) map[string]string {
	if h.kind == dsl.AdmissionHandler {
		return h.lacks
	}
	out := withoutOld(h)
	switch {
	case h.kind == dsl.DaemonHandler:
		out[expr.Handlers] = "is not known to a daemon, which runs beside them"
	case h.state != "":
		out[expr.Handlers] = "is not known to a machine, which runs before them"
	}
	if h.whole() {
		for _, name := range []string{expr.Self, expr.Old, expr.Diff, expr.Children, expr.Related, expr.Handlers} {
			out[name] = "is not there in a schedule, which has no one object (objects has them all)"
			if h.active() {
				out[name] = notForActivity
			}
		}
	}
	if h.starts {
		out[expr.Indexes] = "are not there in a startup, which runs before anything is watched"
	}
	return out
}

// withoutOld returns the old state of the object and its difference, if the handler's expressions cannot have them.
func withoutOld(h *making) map[string]string {
	out := map[string]string{}
	for _, name := range []string{expr.Old, expr.Diff} {
		switch {
		case h.kind == dsl.DaemonHandler:
			out[name] = "is not known to a daemon, which has no stored state"
		case h.state != "":
			out[name] = "is not known to a machine, which goes by the object as it is"
		case h.level:
			out[name] = "is not known to a level-triggered handler, which has no stored state (want causes: [create, update], or one of them)"
		case h.Old != nil && !*h.Old:
			out[name] = "is not known to a handler with old: false"
		case !slices.Contains(h.Causes, dsl.Update) && !slices.Contains(h.Causes, dsl.Reconcile):
			out[name] = "is never known to a handler without the cause update"
		}
	}
	return out
}

// described describes a handler's actions for people.
func described(h *making) string {
	if len(h.Steps) > 0 {
		var names []string
		for _, s := range h.Steps {
			names = append(names, s.action)
		}
		return steps + ": " + strings.Join(names, ", ")
	}
	return h.does()
}

// does describes one action for people.
func (d *doing) does() string {
	if u, is := d.config.(*use); is {
		if u.As != "" {
			return d.action + ": " + u.File + " as " + u.As
		}
		return d.action + ": " + u.File
	}
	if name, ok := d.config.(*string); ok {
		return fmt.Sprintf("%s: %s", d.action, *name)
	}
	if of, is := d.config.(interface{ Says() string }); is && of.Says() != "" {
		return d.action + ": " + of.Says()
	}
	return d.action
}
