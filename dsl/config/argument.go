// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// parametersKey is the key of a part's parameters.
const parametersKey = "parameters"

// arguments compiles the values of a part's parameters. The result has the variables of the part's expressions.
//
// A parameter is a variable of its own name, as a let is one, and not a field of a variable such as with: a part reads like a
// handler, and what a handler has in lets becomes parameters without a change of its expressions.
func (w *watched) arguments(u *use, names []string, within func(shape.Schemas) shape.Schemas) *expr.Lets {
	with, on := u.at.Key(withKey), u.piece
	meant := w.unknown(u, with)
	var values []expr.Let
	for i := range on.parameters {
		name := on.parameters[i].Name
		a := &argument{watched: w, declared: &on.parameters[i], of: u, at: with.Key(name), mistyped: slices.Contains(meant, name)}
		values = append(values, a.value(with, names, within))
	}
	base, err := w.loader.compiler(names...)
	if err != nil {
		w.Fault(with, "%v", err)
		return nil
	}
	known, faults := base.Parameters(w.lets, values)
	for _, f := range faults {
		if _, in := errors.AsType[*expr.Error](f.Err); in {
			w.wrongLet(with.Key(f.Name), f.Err)
		} else {
			on.FaultKey(path(parametersKey).Key(f.Name), "%v", f.Err)
		}
	}
	for _, one := range values {
		place := path(parametersKey).Key(one.Name)
		w.out.Checks = append(w.out.Checks, on.placed(place, place, unused(known, one.Name)))
	}
	return known
}

// unknown notes values of parameters that a part does not have, and returns the names that were probably meant.
func (w *watched) unknown(u *use, with path) (meant []string) {
	var names []string
	for _, declared := range u.piece.parameters {
		names = append(names, declared.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(u.With)) {
		if !slices.Contains(names, name) {
			w.FaultKey(with.Key(name), "%s", form.Unknown("parameter", name, names))
			if near, is := words.Nearest(name, names); is {
				meant = append(meant, near)
			}
		}
	}
	return meant
}

// argument is the value of a part's parameter.
type argument struct {
	*watched
	declared *crd.Parameter
	of       *use
	// at is the place of the value, whether it is given or not. mistyped: it is probably given under another name.
	at       path
	mistyped bool
}

// noValue is the expression of a parameter without a value, or with a fault.
const noValue = "dyn(null)"

// value returns the value as the expression that gives it. Around is the map of all values.
func (a *argument) value(around path, names []string, within func(shape.Schemas) shape.Schemas) expr.Let {
	out := expr.Let{Name: a.declared.Name, Text: noValue, At: a.where(a.at), Parameter: &expr.Parameter{Fits: a.declared.Fits}}
	if !a.declared.Optional() {
		out.Parameter.Schema = a.declared.Schema
	}
	value, given := a.of.With[a.declared.Name]
	switch {
	case a.Faulty(a.at), !given && a.mistyped:
		out.Parameter = &expr.Parameter{}
	case !given && a.declared.Required:
		a.Missing(around, a.declared.Name, "the parameter %s of %s is required", a.declared.Name, a.of.File)
		out.Parameter = &expr.Parameter{}
	case !given:
		out.At = a.of.piece.where(path(parametersKey).Key(a.declared.Name))
		out.Text = expr.Literal(a.declared.Default)
	default:
		if text, ok := a.text(around, value, names); ok {
			out.Text = text.expression
			if text.computed != nil {
				a.check(around, a.at, func(s shape.Schemas) []error {
					return check.Template(text.computed, check.Let(&out, within(s)), a.declared.Schema)
				})
			}
		} else {
			out.Parameter = &expr.Parameter{}
		}
	}
	return out
}

// argumentText is the expression of a value.
type argumentText struct {
	expression string
	// computed is the template of a value that has expressions; nil for a plain value.
	computed *expr.Template
}

// text returns the expression that gives a value; not ok if it has a fault.
func (a *argument) text(around path, value any, names []string) (out argumentText, ok bool) {
	compiler, err := a.compiler(names...)
	if err != nil {
		a.Fault(a.at, "%v", err)
		return out, false
	}
	t, err := compiler.Template(value, a.declared.Name)
	if err != nil {
		a.unfit(around, a.at, err)
		return out, false
	}
	programs := t.Programs()
	if len(programs) == 0 {
		return a.plain(t)
	}
	if t.Uses(expr.Params) {
		a.Fault(a.at, "params is not there in the values of a part's parameters")
		return out, false
	}
	whole := len(t.Pieces) == 1
	switch {
	case whole && programs[0].Optional() && a.declared.Required:
		a.Fault(a.at, "the value may be absent, and the parameter is required: say what it is then, with orValue(…)")
		return out, false
	case whole && programs[0].Optional():
		out.expression = fmt.Sprintf("%s.orValue(%s)", t.Expression(), expr.Literal(a.declared.Default))
	case whole:
		out.expression, _ = t.Plain.(string) // as it stands, so that places in it stay as they are
	default:
		out.expression = t.Expression()
	}
	out.computed = t
	return out, true
}

// plain returns the expression of a value without expressions.
func (a *argument) plain(t *expr.Template) (out argumentText, ok bool) {
	value, err := t.Render(expr.Scope{})
	if number, is := value.(int64); is && a.declared.Schema != nil && slices.Contains(a.declared.Schema.Type, "number") {
		value = float64(number)
	}
	if err == nil {
		err = a.declared.Fits(value)
	}
	if err != nil {
		a.Fault(a.at, "%v", err)
		return out, false
	}
	return argumentText{expression: expr.Literal(value)}, true
}
