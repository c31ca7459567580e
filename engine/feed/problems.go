// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// namesMost bounds how many namespaces a message names.
const namesMost = 10

// Problems are how a feed is in the namespaces where something is wrong.
type Problems map[string]State

// Lack enters that verbs are missing in a namespace, or everywhere when it is empty. Told is that of the state.
func (all Problems) Lack(namespace string, verbs []string, told bool) {
	text := strings.Join(verbs, ", ")
	if namespace != "" {
		text += " in namespace " + namespace
	}
	all[namespace] = State{Phase: Forbidden, Text: text, Missing: verbs, Told: told}
}

// lacks tells which verbs are missing where, empty when none is.
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

// Outcome is how a feed is as a whole that has these problems in all of its namespaces.
func (all Problems) Outcome() State {
	if lacks := all.lacks(); lacks != "" {
		return State{Phase: Forbidden, Text: lacks, Told: all.told()}
	}
	out := State{Phase: Running}
	for i, ns := range slices.Sorted(maps.Keys(all)) {
		if i == 0 || out.Told && !all[ns].Told {
			out = all[ns]
		}
	}
	return out
}

// told reports whether the log tells of all of them already.
func (all Problems) told() bool {
	for _, p := range all {
		if !p.Told {
			return false
		}
	}
	return true
}

// String tells of them for people, as a warning while other namespaces are well. Empty when there are none.
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
