// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/google/cel-go/cel"

	"github.com/handwerk-dev/handwerk/dsl"
)

// activation gives an evaluation its variables, and makes only those that it asks for. The plain
// maps of a request are read by CEL as they are: nothing is converted or copied.
type activation struct {
	request *dsl.Request
	params  dsl.Params
}

var _ cel.Activation = (*activation)(nil)

// ResolveName returns the value of a variable.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case Self:
		if a.request.Object == nil {
			return map[string]any{}, true
		}
		return a.request.Object.Object, true
	case Old:
		if a.request.Old == nil {
			return nil, true
		}
		return a.request.Old, true
	case Diff:
		return changes(a.request.Diff), true
	case Cause:
		return string(a.request.Cause), true
	case Params:
		return map[string]any(a.params), true
	default:
		return nil, false
	}
}

// Parent returns nil: there is no wider scope.
func (a *activation) Parent() cel.Activation { return nil }

func changes(diff []dsl.Change) []any {
	out := make([]any, len(diff))
	for i, c := range diff {
		out[i] = map[string]any{
			"op": string(c.Op), "path": c.Path.String(), "old": c.Old, "new": c.New,
		}
	}
	return out
}
