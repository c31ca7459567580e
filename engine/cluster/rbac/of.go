// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Settings are further inputs of the rights.
type Settings struct {
	// Namespace is the namespace of the operator's pod, for the leader's Lease and the register, unless the
	// operator names another one. Without either there is no register.
	Namespace string
	// InstallCRDs: the operator installs its CRDs.
	InstallCRDs bool
	// SecureMetrics: the operator asks the API server who may read its metrics.
	SecureMetrics bool
	// Lookup looks up resources. Nil means [Guess] with the CRDs.
	Lookup Lookup
	// CRDs are CRDs of other people's kinds that lie beside the configuration. Optional.
	CRDs []map[string]any
	// Resources are the resources that the operator works on. Nil means all that have handlers.
	Resources []*dsl.Resource
}

// Engine names the engine in reasons, for rights that are not a handler's.
const Engine = "engine"

// Of returns every right that the operator needs, sorted, without rights that another one includes. It leaves out
// the rights that every account has: discovery, and reviews of its own rights.
func Of(op *dsl.Operator, s Settings) []Rule {
	c := &collector{op: op, lookup: s.Lookup, spaces: plainNames(op.Scope.Namespaces)}
	if c.lookup == nil {
		c.lookup = Guess(op, s.CRDs...)
	}
	if s.Resources == nil {
		s.Resources = op.Handled()
	}
	for _, r := range s.Resources {
		c.resource(r)
	}
	for _, x := range op.Indexes() {
		c.add(about{Name: x.Resource}, because("watches it for index "+x.Name), "list", "watch")
	}
	for h := range activities(op) {
		for _, need := range h.Needs {
			c.need(nil, activityName(h), h, need)
		}
	}
	c.events()
	namespace := cmp.Or(op.Settings.LeaderElection.Namespace, s.Namespace)
	c.leader(namespace)
	c.register(namespace)
	c.key(namespace)
	c.paused(namespace)
	c.limited(namespace)
	c.admission(namespace)
	c.cluster(s.InstallCRDs)
	if s.SecureMetrics {
		c.reviews()
	}
	return c.sorted()
}

// Undeclared returns the handlers whose needs are not known, as "foos/status".
func Undeclared(op *dsl.Operator) (out []string) {
	for r, h := range op.Handlers() {
		if !h.Declared {
			out = append(out, handlerName(r, h))
		}
	}
	for h := range activities(op) {
		if !h.Declared {
			out = append(out, activityName(h))
		}
	}
	return out
}

// activities returns the operator's activities.
func activities(op *dsl.Operator) iter.Seq[*dsl.Handler] {
	return func(yield func(*dsl.Handler) bool) {
		for _, c := range []dsl.Cause{dsl.Startup, dsl.Cleanup, dsl.HealthProbe, dsl.ReadyProbe} {
			for _, h := range op.Activities(c) {
				if !yield(h) {
					return
				}
			}
		}
	}
}

func activityName(h *dsl.Handler) string { return string(h.Causes[0]) + "/" + h.ID }

func handlerName(r *dsl.Resource, h *dsl.Handler) string { return r.Name.Resource + "/" + h.ID }

// plainNames returns the namespaces if all are names without globs; otherwise nil, because they are not known
// before.
func plainNames(patterns []string) []string {
	if slices.ContainsFunc(patterns, func(p string) bool { return strings.ContainsAny(p, `*?[!\`) }) {
		return nil
	}
	out := slices.Clone(patterns)
	slices.Sort(out)
	return slices.Compact(out)
}

// collector collects the rights of an operator.
type collector struct {
	op     *dsl.Operator
	lookup Lookup
	// spaces are the namespaces that the operator works in; empty for the whole cluster.
	spaces []string
	rules  []Rule
}

// about is the object of a right, before the served resources are known.
type about struct {
	Name        dsl.ResourceName
	Kind        Kind
	subresource string
	names       []string
	// namespace limits it to one namespace; empty means the operator's scope.
	namespace string
	// everywhere: it is needed in all namespaces, whatever the operator's scope is.
	everywhere bool
	// written is the kind of object that needs the right to be written; see [dsl.Need]. Mostly empty.
	written Kind
}

// add adds rights for a reason.
func (c *collector) add(a about, why Reason, verbs ...string) { c.put(a, why, false, verbs...) }

// offer adds optional rights: without them, only the purpose in the reason fails.
func (c *collector) offer(a about, why Reason, verbs ...string) { c.put(a, why, true, verbs...) }

func (c *collector) put(a about, why Reason, optional bool, verbs ...string) {
	served := c.served(a)
	rule := Rule{Group: a.Name.Group, Resource: served.Resource, Subresource: a.subresource, Namespaced: served.Namespaced, Reasons: []Reason{why}, Optional: optional}
	if a.Name.Resource == "" {
		rule.Group = a.Kind.Group
	}
	if a.subresource == "status" && !served.Status {
		rule.Subresource = "" // the object is written as a whole
	}
	spaces := c.spaces
	switch {
	case !served.Namespaced || a.everywhere || len(spaces) == 0 && a.namespace == "":
		spaces = []string{""}
	case a.namespace != "":
		spaces = []string{a.namespace}
	}
	for _, verb := range verbs {
		names := a.names
		if len(names) == 0 || a.written.Empty() && slices.Contains([]string{"create", "deletecollection"}, verb) {
			names = []string{""}
		}
		for _, rule.Namespace = range spaces {
			for _, rule.Name = range names {
				rule.Verb = verb
				c.rules = append(c.rules, rule)
			}
		}
	}
}

// served returns the served resource of a right. A right for writing an object of another kind is needed where that
// object is.
func (c *collector) served(a about) Served {
	if a.written.Empty() {
		return c.lookup(a.Name, a.Kind)
	}
	return Served{Resource: a.Name.Resource, Namespaced: c.lookup(dsl.ResourceName{}, a.written).Namespaced, Status: true}
}

// sorted merges equal rights, and drops rights that another one includes.
func (c *collector) sorted() []Rule {
	slices.SortStableFunc(c.rules, compare)
	var out []Rule
	for _, same := range chunks(c.rules, func(a, b Rule) bool { return compare(a, b) == 0 }) {
		out = append(out, merged(same...))
	}
	places := make(map[right]int, len(out)) // there may be thousands, one for each namespace
	for i, r := range out {
		places[r.right()] = i
	}
	covered := func(r Rule) (by []int) { // an optional right may be left out, so a required right needs a required one
		for _, wider := range r.right().wider() {
			if j, found := places[wider]; found && (r.Optional || !out[j].Optional) {
				by = append(by, j)
			}
		}
		return by
	}
	for i := range out {
		for _, j := range covered(out[i]) {
			out[j] = merged(out[j], out[i])
		}
	}
	return slices.DeleteFunc(out, func(r Rule) bool { return len(covered(r)) > 0 })
}

// merged returns the first of equal rights with the reasons of all.
func merged(rules ...Rule) Rule {
	out := rules[0]
	out.Reasons = slices.Clone(out.Reasons)
	for _, r := range rules[1:] {
		out.Optional = out.Optional && r.Optional
		out.Namespaced = out.Namespaced && r.Namespaced // for a cluster-scoped object, the right is needed everywhere
		for _, reason := range r.Reasons {
			if !slices.Contains(out.Reasons, reason) {
				out.Reasons = append(out.Reasons, reason)
			}
		}
	}
	return out
}
