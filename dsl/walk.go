// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// Walk calls visit for every handler of the operator, in declared order. It is the one way to
// look at an operator from outside, so what tools show cannot differ from what runs.
func Walk(op *Operator, visit func(*Resource, *Handler)) {
	for _, r := range op.resources {
		for _, h := range r.handlers {
			visit(r, h)
		}
	}
}
