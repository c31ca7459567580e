// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// namesMost bounds how many namespaces a message names.
const namesMost = 10

// Problems are the states of a source in the namespaces with a problem.
type Problems map[string]State

// AddMissing records missing verbs in a namespace; everywhere if it is empty. Logged is the Logged of the state.
func (all Problems) AddMissing(namespace string, verbs []string, logged bool) {
	text := strings.Join(verbs, ", ")
	if namespace != "" {
		text += " in namespace " + namespace
	}
	all[namespace] = State{Phase: Forbidden, Text: text, Missing: verbs, Logged: logged}
}

// lacks returns the missing verbs with their namespaces; empty if there are none.
func (all Problems) lacks() string {
	var parts []string
	for _, p := range all {
		if len(p.Missing) > 0 {
			parts = append(parts, p.Text)
		}
	}
	slices.Sort(parts)
	if more := len(parts) - namesMost; more > 0 {
		parts = append(parts[:namesMost], fmt.Sprintf("and in %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Outcome returns the state of a source that has these problems in all of its namespaces.
func (all Problems) Outcome() State {
	if lacks := all.lacks(); lacks != "" {
		return State{Phase: Forbidden, Text: lacks, Logged: all.logged()}
	}
	out := State{Phase: Running}
	for i, ns := range slices.Sorted(maps.Keys(all)) {
		if i == 0 || out.Logged && !all[ns].Logged {
			out = all[ns]
		}
	}
	return out
}

// logged reports whether the log has all problems already.
func (all Problems) logged() bool {
	for _, p := range all {
		if !p.Logged {
			return false
		}
	}
	return true
}

// String returns the problems as a warning for people; empty if there are none.
func (all Problems) String() string {
	var parts []string
	if lacks := all.lacks(); lacks != "" {
		parts = append(parts, string(Forbidden)+": "+lacks)
	}
	more := 0
	for _, ns := range slices.Sorted(maps.Keys(all)) {
		switch p := all[ns]; {
		case p.Phase == Forbidden:
		case len(parts) < namesMost:
			parts = append(parts, string(p.Phase)+": "+p.Text)
		default:
			more++
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
