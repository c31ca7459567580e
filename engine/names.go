// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// names are the present and earlier names of an operator. Marks under an earlier name are its own.
type names struct {
	op *dsl.Operator
}

// earlier returns the operator's earlier names.
func (n names) earlier() (out []string) {
	for _, op := range n.op.Earlier() {
		out = append(out, op.Name)
	}
	return out
}

// managers returns the operator's field managers, the current one first.
func (n names) managers() []string { return append([]string{n.op.Name}, n.earlier()...) }

// markers returns the prefixes of the field managers with which earlier versions of the operator have marked objects as
// handled.
func (n names) markers() []string {
	out := n.managers()
	for i, name := range out {
		out[i] = patch.Marker(name)
	}
	return out
}

// registers returns the names of the operator's register under its earlier names, without the present one. An operator
// that only changed its domain has one register.
func (n names) registers() []string {
	return n.others((*dsl.Operator).Register)
}

// locks returns the names of the leader's lock under its earlier names, without the present one.
func (n names) locks() []string {
	return n.others((*dsl.Operator).LeaderLock)
}

// others returns the earlier values of a name that differ from the current one.
func (n names) others(of func(*dsl.Operator) string) (out []string) {
	current := of(n.op)
	for _, op := range n.op.Earlier() {
		if name := of(op); name != current && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
