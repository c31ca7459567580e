// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import apiservercel "k8s.io/apiserver/pkg/apis/cel"

// MostCost is the cost that one evaluation may have, in CEL's units; it is that of Kubernetes.
const MostCost = apiservercel.PerCallLimit

// Trial is what came of an evaluation.
type Trial struct {
	// Value is as [Program.Eval] returns it.
	Value any
	// Type describes the value in CEL, as in "a whole number".
	Type string
	// Cost is what the evaluation has cost, in CEL's units.
	Cost uint64
}

// Try evaluates an expression as [Program.Eval] does, and says also what kind of value it gives and what that has cost.
func (p *Program) Try(s Scope) (Trial, error) {
	a := p.newActivation(s)
	out, details, err := p.eval(a)
	if err != nil {
		return Trial{}, p.evaluation(err, a)
	}
	t := Trial{Type: named(out.Type().TypeName())}
	if cost := details.ActualCost(); cost != nil {
		t.Cost = *cost + a.cost
	}
	t.Value, err = plainValue(out, s.room())
	return t, err
}
