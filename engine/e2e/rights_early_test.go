// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestMissingRightsAreReportedBeforeTheyAreNeeded: of an operator that may read everything and write nothing,
// /readyz?verbose says what is missing and to whom, also in a process that stands by, before there is
// anything to handle; and that it was given.
func TestMissingRightsAreReportedBeforeTheyAreNeeded(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("early")
	c := fooRights(ns)
	writes := func(r rbac.Rule) bool {
		return r.Resource != "leases" && !slices.Contains([]string{"get", "list", "watch"}, r.Verb)
	}
	allow := func(rules []rbac.Rule) {
		t.Helper()
		for _, role := range rbac.Roles(rules) {
			for _, p := range role.Policies {
				rule := cluster.Rule(p.Group, p.Resource, p.Verbs...)
				rule.ResourceNames = p.Names
				user.AllowIn(t, role.Namespace, rule)
			}
		}
	}
	allow(slices.DeleteFunc(neededRights(c, ns), writes))
	said := map[string]string{
		"rights/deployments.apps": "may not create deployments.apps in namespace " + ns + " (handler foos/deployment); " +
			"may not patch deployments.apps in namespace " + ns + " (handler foos/deployment); account " + user.Name,
		"rights/foos.samplecontroller.k8s.io/status": "may not patch foos.samplecontroller.k8s.io/status in namespace " + ns + " (handler foos/status); account " + user.Name,
		"rights/events.events.k8s.io":                "may not create events.events.k8s.io in namespace " + ns + " (engine: sends Events)",
	}
	processes := []*cluster.Running{
		cluster.Run(t, c.op, engine.Settings{Config: user.Config(), Identity: "one"}),
		cluster.Run(t, c.op, engine.Settings{Config: user.Config(), Identity: "two"}),
	}
	for _, running := range processes {
		for name, text := range said {
			awaitCheck(t, running, name, ops.Warn, text)
		}
		for _, check := range running.Engine.Ready() {
			if check.State == ops.Fail && check.Name != "started" || strings.Contains(check.Message, "finalizers") {
				t.Errorf("it is said that %s", check)
			}
		}
	}
	allow(slices.DeleteFunc(neededRights(c, ns), func(r rbac.Rule) bool { return !writes(r) }))
	for _, running := range processes {
		running.AwaitReady(t)
	}
}
