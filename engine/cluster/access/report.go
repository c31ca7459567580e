// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// whoMost bounds how many users of a right a message names.
const whoMost = 3

// gap is a right that is missing.
type gap struct {
	rbac.Rule
	// namespaces are the namespaces in which the right is missing; one empty name means all. There is at least one.
	namespaces []string
	// of is the number of namespaces in which the right is needed.
	of int
}

// found records the missing rights, and logs changes. It calls the owner when a right was granted.
func (m *Monitor) found(missing []gap) {
	m.mu.Lock()
	before, account := m.missing, m.account
	m.missing = missing
	m.mu.Unlock()
	for _, g := range without(missing, before) {
		m.logOf(g).Info("right is missing", logmark.Warning, true, "right", g.String(), "for", g.who(), "account", account)
	}
	given := without(before, missing)
	for _, g := range given {
		m.logOf(g).Info("missing right was granted, or is no longer needed", "right", g.String())
	}
	if len(given) > 0 {
		m.Retry() // rights are given together, and each is asked for at a time of its own
		m.settings.Owner.OnGranted()
	}
}

// logOf returns the logger for a missing right: at V(1) if the operator works without it.
func (m *Monitor) logOf(g gap) logr.Logger {
	if g.Optional {
		return m.settings.Log.V(1)
	}
	return m.settings.Log
}

// HasMissing reports whether a right is known to be missing.
func (m *Monitor) HasMissing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.missing) > 0
}

// Logged reports whether the error of a request is about a missing right that the log has.
func (m *Monitor) Logged(err error) bool {
	refusal := refused(err)
	if refusal == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.missing, func(g gap) bool {
		return !g.Optional && refusal.anyIn([]rbac.Rule{g.Rule})
	})
}

// without returns the gaps whose right is not among the others, in any namespace.
func without(all, others []gap) (out []gap) {
	for _, g := range all {
		same := func(o gap) bool { return o.Rule.String() == g.Rule.String() }
		if !slices.ContainsFunc(others, same) {
			out = append(out, g)
		}
	}
	return out
}

// String names the right and where it is missing, as in "create deployments.apps in namespace a".
func (g gap) String() string {
	out := g.Rule.String()
	if g.namespaces[0] != "" {
		out += " in namespace " + strings.Join(g.namespaces, ", ")
	}
	if g.of > spacesMost {
		out += fmt.Sprintf(" (%d of %d were asked for)", spacesMost, g.of)
	}
	return out
}

// who returns the handlers, or the parts of the engine, that need the right.
func (g gap) who() string {
	var names []string
	for _, reason := range g.Reasons {
		name := reason.Who
		if name == rbac.Engine {
			name = reason.String()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // rights are collected in no order
	if more := len(names) - whoMost; more > 0 {
		names = append(names[:whoMost], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}

// Checks returns a warning for each resource that lacks rights, named "rights/" with the resource. Optional rights are
// not reported.
func (m *Monitor) Checks() (out []ops.Check) {
	by := m.AccountSuffix()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := 0; i < len(m.missing); {
		target := m.missing[i].Target()
		var parts []string
		for ; i < len(m.missing) && m.missing[i].Target() == target; i++ {
			if g := m.missing[i]; !g.Optional {
				parts = append(parts, fmt.Sprintf("may not %s (%s)", g, g.who()))
			}
		}
		if len(parts) > 0 {
			out = append(out, ops.Check{Name: "rights/" + target, State: ops.Warn, Message: strings.Join(parts, "; ") + by})
		}
	}
	return out
}

// MissingFor returns the rights that the engine or the handlers of a resource need in a namespace and lack, as in "may
// not create deployments.apps (handler foos/app)". The resource has its name in the ids of handlers.
func (m *Monitor) MissingFor(resource, namespace string) (out []string) {
	by := m.AccountSuffix()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.missing {
		concerns := slices.ContainsFunc(g.Reasons, func(r rbac.Reason) bool {
			return r.Who == rbac.Engine || strings.HasPrefix(r.Who, "handler "+resource+"/")
		})
		there := namespace == "" || slices.Contains(g.namespaces, namespace) || slices.Contains(g.namespaces, "")
		if concerns && there && !g.Optional {
			out = append(out, fmt.Sprintf("may not %s (%s%s)", g, g.who(), by))
		}
	}
	return out
}

// AccountSuffix returns the end of a message about a missing right, which names the account, as in "; account
// operator". It is empty if the account is not known.
func (m *Monitor) AccountSuffix() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.account == "" {
		return ""
	}
	return "; account " + m.account
}

// Missing returns the missing rights, in no order, including those that askers found. All namespaces count as one.
func (m *Monitor) Missing() (out []ops.MissingRight) {
	counts := map[ops.MissingRight]int{}
	m.mu.Lock()
	for _, g := range m.missing {
		if !g.Optional {
			counts[ops.MissingRight{Resource: g.Target(), Verb: g.Verb}] += len(g.namespaces)
		}
	}
	m.mu.Unlock()
	for other := range m.settings.Askers {
		for _, lack := range other.Missing() {
			right := ops.MissingRight{Resource: lack.Resource, Verb: lack.Verb}
			counts[right] = max(counts[right], lack.Namespaces) // sources of the same resource lack the same
		}
	}
	for right, n := range counts {
		right.Namespaces = n
		out = append(out, right)
	}
	return out
}
