// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// explainer explains a condition for an object.
type explainer = func(s *dsl.Subject) dsl.Clause

// explains returns what explains a condition of the document. What is its name for people. If absent is set, a missing
// value is the answer false.
func (p *part) explains(at path, what string, program *expr.Program, params dsl.Params, absent bool) explainer {
	place := p.line(at)
	return func(s *dsl.Subject) dsl.Clause {
		out := program.Explain(expr.Scope{Subject: s, Params: params, Vars: objectsOf(s)}, absent)
		out.What, out.Place = what, place
		return out
	}
}

// ask returns a condition that has one answer for an object.
func ask(one explainer) actions.Ask {
	return actions.Ask{Explain: func(s *dsl.Subject) []dsl.Clause { return []dsl.Clause{one(s)} }}
}

// placeAsks sets the place of conditions that an action at the path has.
func (p *part) placeAsks(at path, asks []actions.Ask) {
	for i, one := range asks {
		asks[i].Place = p.line(p.step(at, one.At))
	}
}

// mostExplained is how many entries of a handler with forEach are explained.
const mostExplained = 10

// explainCode joins the conditions within a handler's code. It returns nil if the code has no condition. With entries, each is asked for
// each of them.
func explainCode(entries *actions.Entries, asks []actions.Ask) func(s *dsl.Subject) []dsl.Clause {
	if len(asks) == 0 {
		return nil
	}
	all := func(s *dsl.Subject) (out []dsl.Clause) {
		for _, one := range asks {
			for _, c := range one.Explain(s) {
				if c.Place == "" {
					c.Place = one.Place
				}
				out = append(out, c)
			}
		}
		return out
	}
	if entries == nil {
		return all
	}
	return func(s *dsl.Subject) (out []dsl.Clause) {
		list, err := entries.Of.Entries(s)
		if err != nil {
			return []dsl.Clause{{What: forEach, Error: err.Error()}}
		}
		for _, one := range list[:min(len(list), mostExplained)] {
			for _, c := range all(entries.Within(s, one)) {
				c.What = fmt.Sprintf("item %s: %s", one.Key, c.What)
				out = append(out, c)
			}
		}
		return out
	}
}
