// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Program is a compiled predicate. It is safe for use by several goroutines.
type Program struct {
	text    string
	program cel.Program
	uses    map[string]bool
}

// Text returns the expression.
func (p *Program) Text() string { return p.text }

// Uses reports whether the expression refers to the variable. A macro that binds a name of its own
// to the variable's counts too.
func (p *Program) Uses(variable string) bool { return p.uses[variable] }

// Holds evaluates the predicate for a request. The request is only read. The parameters are given
// apart, since a handler's filters run before its parameters are in the request.
//
// An error means that there is no answer: a key that is missing, a result that is neither true
// nor false, or an evaluation that costs more than Kubernetes allows one.
func (p *Program) Holds(r *dsl.Request, params dsl.Params) (bool, error) {
	out, _, err := p.program.Eval(&activation{request: r, params: params})
	if err != nil {
		return false, evaluation(err)
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the result is %s, want true or false", named(out.Type().TypeName()))
	}
	return bool(holds), nil
}

// Predicate makes a handler's filter of the program. Name is what the author calls it, as in
// "when"; it begins the filter's errors.
func (p *Program) Predicate(name string, params dsl.Params) dsl.Predicate {
	return func(r *dsl.Request) (bool, error) {
		holds, err := p.Holds(r, params)
		if err != nil {
			return false, fmt.Errorf("evaluating %s: %w", name, err)
		}
		return holds, nil
	}
}

var errCost = errors.New("it costs more than one evaluation may (is it a loop over a long list?)")

// evaluation puts CEL's one error that nobody understands into words.
func evaluation(err error) error {
	if strings.Contains(err.Error(), "actual cost limit exceeded") {
		return errCost
	}
	return err
}
