// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/dsl/convert/roundtrip"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// converting makes the conversions of a resource.
type converting struct {
	*watched
	// wrong: an expression has a fault, so there is nothing to try.
	wrong bool
}

// conversions adds the conversions of the resource's further versions.
func (w *converting) conversions() {
	if w.form.Schema == nil || w.out.CRD == nil {
		return
	}
	for i, v := range w.form.Schema.Versions {
		if v.Convert == nil {
			continue
		}
		at := w.at.Key("schema").Key("versions").Index(i).Key("convert")
		out := dsl.Conversion{Version: v.Name}
		w.moves(at.Key("move"), v, &out)
		out.To = w.filling(at.Key("to"), v.Convert.To, v.Name, w.out.Name.Version)
		out.From = w.filling(at.Key("from"), v.Convert.From, w.out.Name.Version, v.Name)
		w.out.AddConversion(out)
	}
	if at := w.at.Key("schema"); w.out.Converts() {
		w.check(at, at, func(shape.Schemas) []error { return w.comeBack() })
	}
}

// comeBack returns the faults of conversions that lose something.
func (w *converting) comeBack() (out []error) {
	if w.wrong {
		return nil
	}
	faults, err := roundtrip.Check(w.out)
	if err != nil {
		return []error{err}
	}
	for _, fault := range faults {
		i := slices.IndexFunc(w.form.Schema.Versions, func(v crd.Version) bool { return v.Name == fault.Version })
		step := []string{"versions", strconv.Itoa(i)}
		if w.form.Schema.Versions[i].Convert != nil {
			step = append(step, "convert")
		}
		out = append(out, &shape.Misfit{Path: step, Message: fault.Error()})
	}
	return out
}

// moves adds the fields that move.
func (w *converting) moves(at path, v crd.Version, out *dsl.Conversion) {
	for _, from := range slices.Sorted(maps.Keys(v.Convert.Move)) {
		here, to := at.Key(from), v.Convert.Move[from]
		was, fine := w.converted(here, from, v.Name)
		becomes, good := w.converted(here, to, w.out.Name.Version)
		if !fine || !good {
			continue
		}
		for _, other := range out.MovedTo {
			if other.Leads(becomes) || becomes.Leads(other) {
				w.Fault(here, "another field moves to %s", other)
			}
		}
		out.Moved, out.MovedTo = append(out.Moved, was), append(out.MovedTo, becomes)
	}
}

// converted reads the path of a field of a version.
func (w *converting) converted(at path, text, version string) (dsl.Path, bool) {
	field, err := dsl.ParsePath(text)
	switch {
	case err != nil:
		w.Fault(at, "%v", err)
		return nil, false
	case len(field) < 2 || field[0] != "spec" && field[0] != "status":
		w.Fault(at, "want a field of spec or status, as in spec.size, found %q", text)
		return nil, false
	}
	_, schema, err := crd.ObjectsOf(w.out.CRD, version)
	if err == nil {
		err = check.Path(schema, field...)
	}
	if err != nil {
		w.Fault(at, "%v (in version %s)", err, version)
		return nil, false
	}
	return field, true
}

// filled is a field that a conversion sets.
type filled struct {
	path  dsl.Path
	value *expr.Template
	// constant: the value is for objects that have no other.
	constant bool
}

// filling compiles the fields that a conversion sets; nil without any.
func (w *converting) filling(at path, fields map[string]any, from, to string) dsl.ConvertFunc {
	var all []filled
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		here := at.Key(name)
		field, fine := w.converted(here, name, to)
		value := w.conversionValue(here, fields[name], field, from, to)
		if fine && value != nil {
			all = append(all, filled{field, value, len(value.Programs()) == 0})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(object, out map[string]any) error {
		scope := expr.Scope{Subject: &dsl.Subject{Object: &unstructured.Unstructured{Object: object}}}
		for _, one := range all {
			if err := one.set(scope, out); err != nil {
				return err
			}
		}
		return nil
	}
}

// set sets the field.
func (f filled) set(scope expr.Scope, out map[string]any) error {
	if _, has := f.path.In(out); has && f.constant {
		return nil
	}
	value, err := f.value.Render(scope)
	if err != nil {
		return fmt.Errorf("evaluating %s: %w", f.path, err)
	}
	if value == nil || value == expr.None {
		convert.Remove(out, f.path)
		return nil
	}
	return convert.Put(out, f.path, value)
}

// withoutInConversions are the variables that conversions do not have: they know the object alone.
func withoutInConversions() map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		expr.Old, expr.Diff, expr.Cause, expr.Event, expr.Params, expr.Now, expr.Children, expr.Related, expr.Indexes, expr.Handlers,
	} {
		out[name] = "is not known to a conversion (want self, the object in the other version)"
	}
	return out
}

// conversionValue compiles a value, and checks it against the schemas of both versions; nil if it has a fault.
func (w *converting) conversionValue(at path, tree any, field dsl.Path, from, to string) *expr.Template {
	compiler, err := w.loader.compiler()
	if err != nil {
		w.Fault(at, "%v", err)
		return nil
	}
	t, err := compiler.Template(tree)
	if w.unfit(at, at, err); err != nil {
		return nil
	}
	_, self, err := crd.ObjectsOf(w.out.CRD, from)
	_, target, wrong := crd.ObjectsOf(w.out.CRD, to)
	if err != nil || wrong != nil || field == nil {
		return t // a CRD that was made here has no error
	}
	w.check(at, at, func(shape.Schemas) []error {
		s := shape.Schemas{Self: shape.Shape{Schema: self}, Without: withoutInConversions()}
		found := check.Template(t, s, check.At(target, field...))
		w.wrong = w.wrong || len(found) > 0
		return found
	})
	return t
}
