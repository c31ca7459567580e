// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// asks returns the conditions on which the handler's children are desired.
func (p *plan) asks() (out []actions.Ask) {
	for _, c := range sorted(p.children) {
		if c.include != nil {
			out = append(out, actions.Ask{At: c.include.at, Explain: func(s *dsl.Subject) []dsl.Clause { return p.explain(c, s) }})
		}
	}
	return out
}

// mostExplained is how many elements of a child with forEach are explained.
const mostExplained = 10

// explain says how the includeWhen of a child comes to its answer, for each element if it uses one.
func (p *plan) explain(c *child, s *dsl.Subject) (out []dsl.Clause) {
	subject, err := p.recalling(s)
	if err != nil {
		return []dsl.Clause{{What: c.label("") + ": includeWhen", Text: c.include.program.Text(), Error: err.Error()}}
	}
	scope := func(vars map[string]any) expr.Scope {
		of := expr.Scope{Subject: subject, Params: p.params, Vars: vars}
		if dsl.MayBeSecret(c.kind) {
			return of.OfSecret()
		}
		return of
	}
	list := []expr.Element{{}}
	if c.includesEach() {
		if list, err = c.elements(scope); err != nil {
			return []dsl.Clause{{What: c.label("") + ": includeWhen", Text: c.include.program.Text(), Error: err.Error()}}
		}
	}
	for _, e := range list[:min(len(list), mostExplained)] {
		one := c.include.program.Explain(scope(e.Vars), false)
		one.What = c.elementLabel(e, s.Secrets) + ": includeWhen"
		out = append(out, one)
	}
	return out
}
