// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// resource adds the rights of the engine and the handlers for a watched resource.
func (c *collector) resource(r *dsl.Resource) {
	own := about{Name: r.Name}
	c.add(own, because("watches it"), "list", "watch")
	c.marks(r, own)
	for _, h := range r.Handlers() {
		for _, need := range needsOf(r, h) {
			c.need(r, "handler "+handlerName(r, h), h, need)
		}
	}
	for name, kind := range r.Owned() {
		child := about{Name: name, Kind: kind}
		if !kind.Empty() {
			child.Name = dsl.ResourceName{}
		}
		c.add(child, because("watches children of "+r.Name.Resource), "list", "watch")
		if len(c.op.Was) > 0 {
			c.add(child, because(renames), "get", "patch")
		}
		if len(r.Makes) > 0 && kind.Empty() {
			c.add(child, because("takes away children that the configuration has no more"), "delete")
		}
	}
	if byReference(r) {
		c.offer(about{Name: r.Name, subresource: "finalizers"}, because(holdsUp), "update")
	}
	c.offerConditions(r)
	for _, relation := range r.Relations() {
		if of := relation.Namespace; of != "" && len(c.spaces) > 0 && !slices.Contains(c.spaces, of) {
			continue // nothing is watched outside the scope
		}
		c.add(ofRelation(relation), because("watches it for relation "+relation.Name+" of "+r.Name.Resource), "list", "watch")
	}
}

// holdsUp says why the operator may need the right to update the finalizers of owners. It only needs the right if the
// plugin is enabled.
const holdsUp = "children may hold up their owner's deletion, where the admission plugin OwnerReferencesPermissionEnforcement is on, as on OpenShift"

func because(why string) Reason { return Reason{Who: Engine, Why: why} }

// marks adds the rights for the engine's writes to the objects themselves, and for the reads that belong to them.
func (c *collector) marks(r *dsl.Resource, own about) {
	reads := r.Cache == dsl.CacheLive
	if c.records(r) {
		c.add(own, because("keeps the record of its children in namespaces"), "patch")
		reads = true
	}
	for _, h := range r.Handlers() {
		if h.Finalizes() {
			c.add(own, because("keeps its finalizer"), "patch")
		}
		if h.Marks() {
			c.add(own, because("remembers what was handled"), "patch")
		}
		if len(h.Known.Patches) > 0 {
			c.add(own, because("keeps its finalizer, and the record of what its handlers patch"), "patch")
			reads = true
		}
		reads = reads || h.On(dsl.Delete) || h.Daemon != nil || h.Marks() || slices.ContainsFunc(needsOf(r, h), writesSelf)
	}
	if r.KeepsReady() {
		c.add(about{Name: r.Name, subresource: "status"}, because("keeps the condition Ready"), "patch")
		reads = true
		if ownsWorkloads(r) {
			c.offer(about{Name: dsl.ResourceName{Version: "v1", Resource: "pods"}}, because("says why Pods of children do not run; without it, the condition Ready does not name the cause"), "list")
		}
	}
	if len(c.op.Was) > 0 {
		c.add(own, because(renames), "get", "patch")
	}
	if reads {
		c.add(own, because("reads an object again where the cache is not enough, as after a conflict"), "get")
	}
}

// ownsWorkloads reports whether handlers of the resource make objects that run Pods.
func ownsWorkloads(r *dsl.Resource) bool {
	for name, kind := range r.Owned() {
		switch cmp.Or(kind.Kind, name.Resource) {
		case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs":
			return true
		}
	}
	return false
}

// offerConditions offers the rights to set conditions that no handler asks for, unless others need them, as far as is known without
// the schema. Built-in kinds do not get them, and a cache of metadata does not show which there are.
func (c *collector) offerConditions(r *dsl.Resource) {
	const why = "says on an object which handlers fail, and that it is paused; without it, objects do not say so"
	ofObjects := func(h *dsl.Handler) bool { return !h.ResourceWide }
	if dsl.BuiltIn(r.Name.Group) || r.Cache == dsl.CacheMetadata || !slices.ContainsFunc(r.Handlers(), ofObjects) {
		return
	}
	offer := collector{op: c.op, lookup: c.lookup, spaces: c.spaces}
	offer.offer(about{Name: r.Name, subresource: "status"}, because(why), "patch")
	offer.offer(about{Name: r.Name}, because(why), "get") // after a conflict
	needed := make(map[right]bool, len(c.rules))
	for _, one := range c.rules {
		needed[one.right()] = true
	}
	for _, one := range offer.rules {
		if !needed[one.right()] {
			c.rules = append(c.rules, one)
		}
	}
}

// records reports whether the resource is cluster-scoped, and handlers make namespaced children of it: their record
// is then kept on the object.
func (c *collector) records(r *dsl.Resource) bool {
	if core := r.Name.Resource == "namespaces" && r.Name.Group == ""; core || c.lookup(r.Name, Kind{}).Namespaced {
		return false
	}
	return slices.ContainsFunc(r.Handlers(), func(h *dsl.Handler) bool {
		return slices.ContainsFunc(h.Needs, func(n dsl.Need) bool {
			return makesOwned(r, n) && c.lookup(n.Resource, n.Kind).Namespaced
		})
	})
}

// makesOwned reports whether a need is to create a kind that the resource owns.
func makesOwned(r *dsl.Resource, n dsl.Need) bool {
	if !slices.Contains(n.Verbs, "create") || !n.For.Empty() {
		return false
	}
	for name, kind := range r.Owned() {
		named := name.Resource == n.Resource.Resource && name.Group == n.Resource.Group
		if kind == n.Kind && (named || !kind.Empty()) {
			return true
		}
	}
	return false
}

// needsOf returns a handler's needs, without conditions that built-in kinds do not get, nor objects of which the cache holds metadata
// alone.
func needsOf(r *dsl.Resource, h *dsl.Handler) []dsl.Need {
	none := dsl.BuiltIn(r.Name.Group) || r.Cache == dsl.CacheMetadata
	return slices.DeleteFunc(slices.Clone(h.Needs), func(n dsl.Need) bool { return n.Offered && none })
}

// writesSelf reports whether a need is for the engine's write of the handled object.
func writesSelf(n dsl.Need) bool {
	return ofSelf(n) && slices.Contains(n.Verbs, "patch") && (n.Subresource == "" || n.Subresource == "status")
}

func ofSelf(n dsl.Need) bool {
	return n.Resource == dsl.ResourceName{} && n.Kind.Empty() && n.Child == "" && n.Relation == ""
}

// byReference reports whether Go code makes children with an owner reference. Code that creates kinds that the
// resource owns is assumed to; apply declares it.
func byReference(r *dsl.Resource) bool {
	makes := func(n dsl.Need) bool { return n.Kind.Empty() && makesOwned(r, n) }
	return slices.ContainsFunc(r.Handlers(), func(h *dsl.Handler) bool { return slices.ContainsFunc(h.Needs, makes) })
}

// givesAway reports whether a need is to write objects that grant rights: roles and their bindings.
func givesAway(n dsl.Need) bool {
	return !n.For.Empty() || slices.Contains(n.Verbs, "bind") || slices.Contains(n.Verbs, "escalate")
}

// ofNeed returns the object of a need, as declared.
func ofNeed(n dsl.Need) about {
	return about{Name: n.Resource, Kind: n.Kind, subresource: n.Subresource, names: n.Names, namespace: n.Namespace, written: n.For}
}

// ofRelation returns the objects that a relation can select.
func ofRelation(r dsl.Relation) about {
	out := about{Name: r.Resource, namespace: r.Namespace}
	if r.Object != "" {
		out.names = []string{r.Object}
	}
	return out
}

// kindOfChild returns the kind of a resource's child by its name; empty if it is not declared.
func kindOfChild(r *dsl.Resource, name string) (kind schema.GroupVersionKind) {
	for _, made := range r.Makes {
		if made.Name == name {
			kind = made.Kind
		}
	}
	return kind
}

// need adds the rights of a handler's need.
func (c *collector) need(r *dsl.Resource, who string, h *dsl.Handler, n dsl.Need) {
	action, _, _ := strings.Cut(h.Known.Action, ": ${") // an expression is no useful description
	why := Reason{Who: who, Why: action}
	if n.Why != "" {
		why.Why = n.Why
	}
	of := ofNeed(n)
	switch {
	case !n.For.Empty():
		c.add(of, why, n.Verbs...)
		return
	case n.Child != "":
		if of.Kind = kindOfChild(r, n.Child); of.Kind.Empty() {
			return // it is computed at run time
		}
	case n.Relation != "":
		i := slices.IndexFunc(r.Relations(), func(one dsl.Relation) bool { return one.Name == n.Relation })
		if i < 0 {
			return
		}
		related := ofRelation(r.Relations()[i])
		of.Name, of.namespace = related.Name, cmp.Or(of.namespace, related.namespace)
		if len(of.names) == 0 {
			of.names = related.names
		}
	case ofSelf(n):
		of.Name = r.Name
	}
	if ofSelf(n) && n.Subresource == "finalizers" {
		c.offer(of, because(holdsUp), n.Verbs...)
		return
	}
	for _, verb := range n.Verbs {
		one := of
		if verb == "list" || verb == "watch" {
			one.names = nil // limited to names, they need a field selector, which the code may not use
		}
		c.add(one, why, verb)
	}
}

// renames is the purpose of rights for an operator with earlier names.
const renames = "moves what it has left under its earlier names (metadata.was)"

const noticesLock = "notices at once when somebody takes or deletes the leader's lock"

// events adds the right to send Events, which are in the namespace of their object, or in the namespace default for
// cluster-scoped objects.
func (c *collector) events() {
	events := about{Name: dsl.ResourceName{Resource: "events", Group: "events.k8s.io"}}
	c.add(events, because("sends Events"), "create", "patch")
	for _, r := range c.op.Handled() {
		if served := c.lookup(r.Name, Kind{}); !served.Namespaced && len(c.spaces) > 0 {
			events.namespace = "default"
			c.add(events, because("sends Events about what has no namespace"), "create", "patch")
		}
	}
}

// leader adds the rights for leader election.
func (c *collector) leader(namespace string) {
	set := c.op.Settings.LeaderElection
	lock := about{Name: dsl.ResourceName{Resource: "leases", Group: "coordination.k8s.io"}, namespace: namespace}
	named := lock
	named.names = []string{c.op.LeaderLock()}
	if set.Mode == dsl.LeaderLease || set.Mode == dsl.LeaderLife {
		c.earlierLocks(lock)
	}
	switch set.Mode {
	case dsl.LeaderLease:
		c.add(named, because("holds the leader's lock"), "get", "update")
		c.add(lock, because("holds the leader's lock"), "create")
		c.offer(named, because(noticesLock), "watch")
	case dsl.LeaderLife:
		c.add(named, because("holds the leader's lock"), "get", "delete")
		c.add(lock, because("holds the leader's lock"), "create")
		c.offer(named, because(noticesLock), "watch")
		c.add(about{Name: dsl.ResourceName{Resource: "pods"}, namespace: namespace}, because("looks whether the leader's pod is there"), "get")
	}
}

// earlierLocks adds the rights to check whether a process leads under an earlier name.
func (c *collector) earlierLocks(lock about) {
	for _, earlier := range c.op.Earlier() {
		if lock.names = []string{earlier.LeaderLock()}; lock.names[0] != c.op.LeaderLock() {
			c.add(lock, because("does not lead while a process of an earlier name does (metadata.was)"), "get")
		}
	}
}

// register adds the rights to record the kinds of children. An operator without children may still have to look for
// those of its earlier versions.
func (c *collector) register(namespace string) {
	if namespace == "" {
		return
	}
	const why = "registers the kinds of its children, so that a later version finds those that it does not make any more"
	all := about{Name: dsl.ResourceName{Resource: "configmaps"}, namespace: namespace}
	own := all
	own.names = []string{c.op.Register()}
	owns := slices.ContainsFunc(c.op.Resources(), (*dsl.Resource).Owner)
	for _, earlier := range c.op.Earlier() {
		if before := all; earlier.Register() != c.op.Register() {
			before.names = []string{earlier.Register()}
			c.put(before, because(renames), !owns, "get", "delete")
		}
	}
	if !owns {
		c.offer(own, because(why), "get", "update")
		return
	}
	c.add(own, because(why), "get", "update")
	c.add(all, because(why), "create")
}

// key adds the rights for a key for digests of Secrets, if such digests are stored.
func (c *collector) key(namespace string) {
	if namespace == "" || !slices.ContainsFunc(c.op.Resources(), (*dsl.Resource).DigestsSecrets) {
		return
	}
	const why = "keeps the key of digests of Secrets, by which it knows what its handlers have handled"
	all := about{Name: dsl.ResourceName{Resource: "secrets"}, namespace: namespace}
	own := all
	own.names = []string{c.op.DigestKey()}
	c.add(own, because(why), "get")
	c.add(all, because(why), "create")
}

// paused adds the rights to see whether the operator is paused.
func (c *collector) paused(namespace string) {
	if namespace != "" {
		own := about{Name: dsl.ResourceName{Resource: "configmaps"}, namespace: namespace, names: c.op.PauseConfigMaps()}
		c.offer(own, because("obeys operator pause; without it, the operator cannot be paused"), "list", "watch")
	}
}

// limited adds the rights to record which deletions wait for limits. The record is created by a patch, for which the API
// server knows its name.
func (c *collector) limited(namespace string) {
	if namespace == "" || !slices.ContainsFunc(c.op.Resources(), (*dsl.Resource).Deletes) {
		return
	}
	own := about{Name: dsl.ResourceName{Resource: "configmaps"}, namespace: namespace, names: []string{c.op.LimitsConfigMap()}}
	c.offer(own, because("records which deletions wait for limits, and obeys operator release"), "create", "get", "patch")
}

// cluster adds the rights for the engine's reads beside the operator's resources.
func (c *collector) cluster(install bool) {
	if of := c.op.Scope; len(c.spaces) == 0 && !of.Everywhere() || of.NamespaceSelector != "" {
		namespaces := about{Name: dsl.ResourceName{Resource: "namespaces"}}
		c.add(namespaces, because("finds the namespaces to work in"), "list", "watch")
		c.offer(namespaces, because("asks whether a namespace is gone that a listing does not have any more; without it, it stays in the scope"), "get")
	}
	if len(c.spaces) == 0 {
		c.offer(about{Name: dsl.ResourceName{Resource: "namespaces"}}, because("obeys the annotation that pauses a namespace; without it, namespaces cannot be paused"), "list", "watch")
	}
	crds := about{Name: dsl.ResourceName{Resource: "customresourcedefinitions", Group: "apiextensions.k8s.io"}}
	c.offer(crds, because("sees a missing CRD come, and a schema change; without it, the first is found by asking every few seconds"), "get", "list", "watch")
	if install {
		c.add(crds, because("installs the CRDs of the configuration"), "get", "create", "patch")
		c.stored()
	}
}

// stored adds the rights to try stored objects by a changed schema.
func (c *collector) stored() {
	for _, r := range c.op.Resources() {
		if r.CRD != nil {
			c.offer(about{Name: r.Name, everywhere: true}, because("tries stored objects by a schema that breaks; without it, a breaking schema is rejected even if no objects are stored"), "list")
		}
	}
}

// reviews adds the rights to find out who may read the metrics.
func (c *collector) reviews() {
	const why = "asks who reads its metrics, and whether they may"
	c.add(about{Name: dsl.ResourceName{Resource: "tokenreviews", Group: "authentication.k8s.io"}}, because(why), "create")
	c.add(about{Name: dsl.ResourceName{Resource: "subjectaccessreviews", Group: "authorization.k8s.io"}}, because(why), "create")
}
