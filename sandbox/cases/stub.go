// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// unknown finds names in the case of functions that neither the program nor an operator has, and of handlers that no
// operator of the case has.
func (r *runner) unknown() {
	functions, handlers := r.suite.functions(), r.handlers()
	for _, name := range slices.Sorted(maps.Keys(r.c.Functions)) {
		r.check(r.c.at.Key("functions").Key(name), name, functions, "neither the program nor the operator has the function")
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
			r.check(e.at.Key("calls").Index(i).Key("function"), c.Function, functions, "neither the program nor the operator has the function")
		}
		for i, l := range e.Log {
			if handler, _, _ := strings.Cut(l.Handler, "/"); l.Handler != "" { // a sub-handler has its own id after a slash
				r.check(e.at.Key("log").Index(i).Key("handler"), handler, handlers, "the operator has no handler")
			}
		}
	}
}

// check notes a failure for an unknown name.
func (r *runner) check(at form.Path, name string, known []string, lacks string) {
	if slices.Contains(known, name) {
		return
	}
	hint := ""
	if near, is := words.Nearest(name, known); is {
		hint = " (did you mean " + near + "?)"
	}
	r.fail(at, lacks+" "+name+hint, "")
}

// handlers are the ids of the handlers and the activities of all operators of the case.
func (r *runner) handlers() (out []string) {
	versions := [][]string{r.file.config()}
	for _, s := range r.c.Steps {
		if s.Upgrade != nil {
			versions = append(versions, r.file.paths(s.Upgrade))
		}
	}
	for _, paths := range versions {
		p, err := r.suite.load(paths)
		if err != nil {
			continue // the step has said so
		}
		for _, h := range p.op.Handlers() {
			out = append(out, h.ID)
		}
		for _, cause := range []dsl.Cause{dsl.Startup, dsl.Cleanup, dsl.HealthProbe, dsl.ReadyProbe} {
			for _, h := range p.op.Activities(cause) {
				out = append(out, h.ID)
			}
		}
	}
	return out
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
