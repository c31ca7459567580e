// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Cleanup names the command cleanup in the reasons of [OfCleanup].
const Cleanup = "cleanup"

// OfCleanup returns every right that package cleanup needs to stop the operator's Deployment and to remove what the
// operator has left, sorted, each once. Children stay: deleting them also needs the verb delete. Kinds of children
// of earlier versions are not included.
func OfCleanup(op *dsl.Operator, s Settings, deployment string) []Rule {
	c := &collector{op: op, lookup: s.Lookup, spaces: plainNames(op.Scope.Namespaces)}
	if c.lookup == nil {
		c.lookup = Guess(op, s.CRDs...)
	}
	operators := Of(op, s)
	for _, r := range op.Resources() {
		c.unmarks(about{Name: r.Name}, "takes its marks off "+r.Name.Resource)
		if !dsl.BuiltIn(r.Name.Group) || Has(operators, r.Name.Group, r.Name.Resource, "status", "patch") {
			c.add(about{Name: r.Name, subresource: "status"}, forCleanup("takes its conditions off "+r.Name.Resource), "patch")
		}
		for name, kind := range r.Owned() {
			child := about{Name: name, Kind: kind}
			if !kind.Empty() {
				child.Name = dsl.ResourceName{}
			}
			c.unmarks(child, "takes its marks off children of "+r.Name.Resource)
		}
		c.givesAway(r)
		c.patched(r)
	}
	if len(c.spaces) == 0 || op.Scope.NamespaceSelector != "" {
		c.unmarks(about{Name: dsl.ResourceName{Resource: "namespaces"}}, "takes pauses off namespaces")
	}
	c.stops(s.Namespace, deployment)
	for _, one := range append([]*dsl.Operator{op}, op.Earlier()...) {
		c.forgets(one, cmp.Or(one.Settings.LeaderElection.Namespace, s.Namespace))
	}
	c.requests()
	return c.sorted()
}

func forCleanup(why string) Reason { return Reason{Who: Cleanup, Why: why} }

// unmarks adds the rights to find and to change objects with marks.
func (c *collector) unmarks(a about, why string) { c.add(a, forCleanup(why), "get", "list", "patch") }

// givesAway adds the rights to change children that grant rights, which are those to make them.
func (c *collector) givesAway(r *dsl.Resource) {
	for _, h := range r.Handlers() {
		for _, n := range h.Needs {
			if givesAway(n) {
				c.add(ofNeed(n), forCleanup("takes its marks off roles and bindings of "+r.Name.Resource+" that give this away"), n.Verbs...)
			}
		}
	}
}

// patched adds the rights to find the objects that handlers patch, and to give back their fields.
func (c *collector) patched(r *dsl.Resource) {
	kinds, _ := r.PatchedKinds()
	for _, kind := range kinds {
		c.add(about{Kind: kind}, forCleanup("looks for what handlers of "+r.Name.Resource+" have patched"), "list")
	}
	for _, h := range r.Handlers() {
		for _, n := range h.Needs {
			if len(h.Known.Patches) > 0 && slices.Contains(kinds, n.Kind) && slices.Equal(n.Verbs, []string{"get", "patch"}) {
				c.add(ofNeed(n), forCleanup("gives back what handlers of "+r.Name.Resource+" have patched"), n.Verbs...)
			}
		}
	}
}

// stops adds the rights to scale the Deployment to zero.
func (c *collector) stops(namespace, deployment string) {
	if namespace == "" || deployment == "" {
		return
	}
	c.add(about{Name: dsl.ResourceName{Resource: "deployments", Group: "apps"}, names: []string{deployment}, namespace: namespace},
		forCleanup("stops the operator"), "get", "patch")
}

// requests adds the rights to find and delete policies and webhook configurations.
func (c *collector) requests() {
	if len(c.keptForRequests()) == 0 {
		return
	}
	for _, resource := range allForRequests {
		c.add(about{Name: dsl.ResourceName{Resource: resource, Group: "admissionregistration.k8s.io"}, everywhere: true},
			forCleanup("deletes its policies and webhooks"), "list", "delete")
	}
}

// forgets adds the rights to delete the objects that an operator keeps for itself.
func (c *collector) forgets(op *dsl.Operator, namespace string) {
	if namespace == "" {
		return
	}
	for _, own := range []struct{ group, resource, name, why string }{
		{"", "configmaps", op.Register(), "deletes the register"},
		{"", "configmaps", op.PauseConfigMap(), "ends a pause"},
		{"", "configmaps", op.LimitsConfigMap(), "deletes the record of deletions that wait"},
		{"", "secrets", op.DigestKey(), "deletes the key of digests"},
		{"coordination.k8s.io", "leases", op.LeaderLock(), "deletes the lock"},
	} {
		c.add(about{Name: dsl.ResourceName{Resource: own.resource, Group: own.group}, names: []string{own.name}, namespace: namespace},
			forCleanup(own.why), "get", "delete")
	}
	if op.NeedsWebhooks() {
		c.add(about{Name: dsl.ResourceName{Resource: "secrets"}, names: []string{op.WebhookSecret()}, namespace: namespace},
			forCleanup("deletes the certificate of webhooks"), "get", "delete")
	}
	lock := about{Name: dsl.ResourceName{Resource: "leases", Group: "coordination.k8s.io"}, names: []string{op.LeaderLock()}, namespace: namespace}
	c.add(lock, forCleanup("holds the lock, so that no process begins to work"), "get", "create", "update")
}
