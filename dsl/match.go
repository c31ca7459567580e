// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// MatchOp says how a [Match] compares.
type MatchOp int

// The ways to compare a label or annotation.
const (
	// Equals wants the key to be there with exactly the value.
	Equals MatchOp = iota
	// Exists wants the key to be there.
	Exists
	// Absent wants the key not to be there.
	Absent
)

// Match is a condition on one label or annotation.
type Match struct {
	Key   string
	Op    MatchOp
	Value string
}

// Matches reports whether set, an object's labels or annotations, fulfils m.
func (m Match) Matches(set map[string]string) bool {
	value, found := set[m.Key]
	switch m.Op {
	case Exists:
		return found
	case Absent:
		return !found
	default:
		return found && value == m.Value
	}
}
