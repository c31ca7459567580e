// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "strings"

// State is what a [Check] found.
type State int

// The states.
const (
	// Pass: all is well.
	Pass State = iota
	// Warn: what the check looks at is degraded, the rest is not. The whole passes, unless that
	// is so of every resource: see [ResourceCheck].
	Warn
	// Fail: the whole fails.
	Fail
)

// String returns "ok", "degraded" or "failed".
func (s State) String() string {
	switch s {
	case Pass:
		return "ok"
	case Warn:
		return "degraded"
	default:
		return "failed"
	}
}

// ResourceCheck begins the names of checks that each tell of one watched resource. An operator of
// which all resources are degraded does nothing, so when none of these checks passes, the whole
// fails.
const ResourceCheck = "resource/"

// Check is one line of /healthz or /readyz.
type Check struct {
	// Name says what was looked at, as in "started" or "resource/foos.v1.example.com". Required,
	// and unique.
	Name string
	// State defaults to Pass.
	State State
	// Message says why, for people. Optional.
	Message string
}

// String is the check's line as ?verbose shows it: "[+]started ok", or
// "[!]resource/foos.v1.example.com degraded: forbidden: list, watch".
func (c Check) String() string {
	mark := map[State]string{Pass: "[+]", Warn: "[!]"}[c.State]
	if mark == "" {
		mark = "[-]"
	}
	line := mark + c.Name + " " + c.State.String()
	if c.Message != "" {
		line += ": " + strings.ReplaceAll(strings.TrimSpace(c.Message), "\n", "; ")
	}
	return line
}

// passed reports whether the whole passes: nothing fails, and not all resources are degraded.
func passed(checks []Check) bool {
	resources, degraded := 0, 0
	for _, c := range checks {
		if c.State == Fail {
			return false
		}
		if strings.HasPrefix(c.Name, ResourceCheck) {
			resources++
			if c.State == Warn {
				degraded++
			}
		}
	}
	return resources == 0 || degraded < resources
}
