// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// unknown finds names of functions in the case that neither the program nor an operator has.
func (r *runner) unknown() {
	known := r.suite.functions()
	check := func(at form.Path, name string) {
		if slices.Contains(known, name) {
			return
		}
		hint := ""
		if near, is := words.Nearest(name, known); is {
			hint = " (did you mean " + near + "?)"
		}
		r.fail(at, "neither the program nor the operator has the function "+name+hint, "")
	}
	for _, name := range slices.Sorted(maps.Keys(r.c.Functions)) {
		check(r.c.at.Key("functions").Key(name), name)
	}
	all := []*expectation{r.c.Expect}
	for _, s := range r.c.Steps {
		all = append(all, s.Expect)
	}
	for _, e := range all {
		if e == nil {
			continue
		}
		for i, c := range e.Calls {
			check(e.at.Key("calls").Index(i).Key("function"), c.Function)
		}
	}
}

// do does what the case wants of a function.
func (s stub) do(j *journal, name string, patch *dsl.Patch) error {
	if j.fails(name, s) {
		err := errors.New(s.Fails)
		if s.Permanent {
			err = dsl.Permanent(err)
		}
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Sets)) {
		fields, nested := s.Sets[key].(map[string]any)
		switch {
		case key == "status" && nested:
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				patch.SetStatus(field, fields[field])
			}
		default:
			patch.Set(key, s.Sets[key])
		}
	}
	return nil
}
