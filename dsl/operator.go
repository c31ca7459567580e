// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"fmt"
	"iter"
	slash "path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Operator is the declaration of an operator: its name, its resources and its handlers.
type Operator struct {
	// Name is the operator's name, a DNS label. It is part of the field manager, the finalizer, the annotation
	// prefix and the Event source. Required.
	Name string
	// Domain is the second part of the prefix of the operator's annotations and finalizer. Defaults to
	// handwerk.dev.
	Domain string
	// Was are the operator's names in earlier versions. An entry is a name, or if the domain was another one, a
	// whole prefix: old-name or old-name.example.com. The engine moves the operator's marks on objects to the
	// current name. It does not lead while another process leads under an earlier name.
	Was []string
	// Scope says where the operator works. Defaults to the whole cluster.
	Scope Scope
	// Settings are the operator's settings; all have defaults.
	Settings Settings
	// Skipped are the documents of the configuration that are not part of an operator, each with its place. The
	// engine logs them once at the start.
	Skipped []string
	// Files are the files of the configuration that have parts of the operator, and Digest is the digest of their texts,
	// in their order. Both are empty for an operator in Go alone.
	Files  []string
	Digest string
	// Checks check the configuration of activities against schemas; see [Operator.CheckSchemas].
	Checks []shape.Check
	// Placed adds to a fault its place in the configuration. It returns faults without a known place as they are.
	// Nil means that there is no configuration.
	Placed func(*Fault) error

	resources  []*Resource
	indexes    []*IndexSpec
	activities []*Handler
}

// Scope says where an operator works.
type Scope struct {
	// Namespaces are names and globs ("team-*"), which also select namespaces that are created later. An entry that
	// begins with "!" excludes namespaces. Empty means all. Cluster-scoped resources are not affected.
	Namespaces []string
	// NamespaceSelector selects namespaces by their labels, in kubectl's form ("team=a,!paused"), whenever they are
	// changed. Where Namespaces has entries, a namespace must match both. Empty means all.
	NamespaceSelector string
}

// Everywhere reports whether the operator works in the whole cluster.
func (s Scope) Everywhere() bool { return len(s.Namespaces) == 0 && s.NamespaceSelector == "" }

// CheckNamespace reports an invalid name of a namespace, or an invalid glob. Valid ones are team-* and !team-old.
func CheckNamespace(pattern string) error {
	name := strings.TrimPrefix(pattern, "!")
	faults := validation.IsDNS1123Label(name)
	if strings.ContainsAny(name, `*?[\`) {
		faults = badGlob(name)
	}
	if len(faults) > 0 {
		return fmt.Errorf("want a namespace or a glob such as team-*: %s", faults[0])
	}
	return nil
}

// badGlob returns the faults of a glob of names. A glob that cannot match any name has a fault.
func badGlob(glob string) []string {
	if _, err := slash.Match(glob, ""); err != nil {
		return []string{"the glob has a bracket or a backslash without its other half"}
	}
	for _, r := range glob {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(`-*?[]^\`, r) {
			return []string{fmt.Sprintf("no name has %q in it", r)}
		}
	}
	return nil
}

// Settings are the settings of an operator. The zero value means the defaults.
type Settings struct {
	LeaderElection LeaderElection
	// GracePeriod is how long handlers may go on after the process was asked to stop. Defaults to 20 s, which
	// leaves 10 s of a pod's usual termination period for the rest.
	GracePeriod time.Duration
	// QPS limits the requests per second of this process to the API server, with bursts up to Burst. Zero means no
	// limit: API Priority and Fairness on the server limits requests.
	QPS float32
	// Burst is the number of requests that may exceed QPS for a moment. Defaults to twice QPS.
	Burst int
	// History is how many bytes of memory the last reconciles over each object take, which are kept for people who ask why. Zero keeps none. Nil
	// means DefaultHistoryBytes.
	History *int64
	// Events says which Events the operator sends. Defaults to EventsWarnings.
	Events EventsMode
	// Limits are the limits of all resources without limits of their own, together.
	Limits Limits
	// AdmissionByOthers: policies, webhook configurations and conversions of CRDs are applied by somebody else, as operator bundle
	// --admission prints them. The operator only answers webhooks, with a certificate from files.
	AdmissionByOthers bool
}

// EventsMode says which Events an operator sends on its own. Events of handlers are always sent.
type EventsMode string

// The modes of Events.
const (
	// EventsWarnings: Events of handlers that fail, and of objects and children that are held.
	EventsWarnings EventsMode = "warnings"
	// EventsChanges: also Events of children that were created or deleted.
	EventsChanges EventsMode = "changes"
	// EventsLog: also Events of what handlers log about their object: errors, warnings and lines of level 0.
	EventsLog EventsMode = "log"
)

// Choices returns the modes of Events.
func (EventsMode) Choices() (what string, words []string) {
	return "mode", []string{string(EventsWarnings), string(EventsChanges), string(EventsLog)}
}

// SendsChanges reports whether Events about created and deleted children are sent.
func (m EventsMode) SendsChanges() bool { return m == EventsChanges || m == EventsLog }

// Defaults.
const (
	// DefaultGracePeriod is the default of Settings.GracePeriod.
	DefaultGracePeriod = 20 * time.Second
	// DefaultWorkers is the default of Resource.Workers: how many objects are handled at once.
	DefaultWorkers = 4
	// DefaultHistoryBytes is the default of Settings.History.
	DefaultHistoryBytes = int64(16 << 20)
)

// LeaderMode says how several processes of one operator elect the one that works.
type LeaderMode string

// The modes of leadership.
const (
	// LeaderNone: every process works. The default; right for one replica.
	LeaderNone LeaderMode = "none"
	// LeaderLease: the holder of a Lease works. The others wait with warm caches.
	LeaderLease LeaderMode = "lease"
	// LeaderLife: the first pod to own the lock works until that pod is gone.
	LeaderLife LeaderMode = "life"
)

// Choices returns the modes of leadership.
func (LeaderMode) Choices() (what string, words []string) {
	return "mode", []string{string(LeaderNone), string(LeaderLease), string(LeaderLife)}
}

// LeaderElection says how the leader is elected.
type LeaderElection struct {
	// Mode defaults to LeaderNone.
	Mode LeaderMode
	// Name is the lock's name. Defaults to the operator's name with the suffix "-leader".
	Name string
	// Namespace is the lock's namespace. Defaults to the namespace of the pod; outside a cluster
	// it is required.
	Namespace string
	// LeaseDuration is how long a standby waits after the last renewal that it has seen. Defaults to 15 s.
	// LeaseDuration, RenewDeadline and RetryPeriod are only for LeaderLease.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it gives up. Defaults to 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between tries. Defaults to 2 s.
	RetryPeriod time.Duration
}

// LeaderLock returns the name of the lock for leader election.
func (op *Operator) LeaderLock() string {
	return cmp.Or(op.Settings.LeaderElection.Name, op.Name+"-leader")
}

// Register returns the name of the ConfigMap that lists the kinds of the operator's children.
func (op *Operator) Register() string { return op.Name + "-children" }

// PauseConfigMap returns the name of the ConfigMap that exists while the operator is paused. It is in the operator's namespace.
func (op *Operator) PauseConfigMap() string { return op.Name + "-paused" }

// PauseConfigMaps returns [Operator.PauseConfigMap] and those of the operator's earlier names, each once: any of them pauses it.
func (op *Operator) PauseConfigMaps() []string {
	out := []string{op.PauseConfigMap()}
	for _, earlier := range op.Earlier() {
		if name := earlier.PauseConfigMap(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// LimitsConfigMap returns the name of the ConfigMap with the deletions that wait for [Limits], and with the releases
// by people. It is in the operator's namespace.
func (op *Operator) LimitsConfigMap() string { return op.Name + "-deletions" }

// DigestKey returns the name of the Secret with the key for digests of Secrets. It is in the operator's namespace.
func (op *Operator) DigestKey() string { return op.Name + "-key" }

// WebhookSecret returns the name of the Secret with the certificate of the operator's webhooks. It is in the operator's namespace.
func (op *Operator) WebhookSecret() string { return op.Name + "-webhook" }

// OwnPlace is the place of an object that the operator keeps for itself.
type OwnPlace struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// What describes the object for people.
	What string
}

// OwnPlaces returns the places of all objects that the operator keeps for itself in its namespace, also under its
// earlier names. Handlers may not write them. It returns nil for an operator without a namespace.
func (op *Operator) OwnPlaces(namespace string) (out []OwnPlace) {
	if namespace == "" {
		return nil
	}
	for _, o := range append(op.Earlier(), op) {
		for _, place := range []OwnPlace{
			{schema.GroupResource{Resource: "configmaps"}, namespace, o.Register(), "register of kinds of children"},
			{schema.GroupResource{Resource: "configmaps"}, namespace, o.PauseConfigMap(), "pause"},
			{schema.GroupResource{Resource: "configmaps"}, namespace, o.LimitsConfigMap(), "record of deletions that wait"},
			{schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, namespace, o.LeaderLock(), "leader's lock"},
			{schema.GroupResource{Resource: "secrets"}, namespace, o.DigestKey(), "key of digests"},
			{schema.GroupResource{Resource: "secrets"}, namespace, o.WebhookSecret(), "certificate of webhooks"},
		} {
			if !slices.Contains(out, place) {
				out = append(out, place)
			}
		}
	}
	return out
}

// New returns an operator without resources.
func New(name string) *Operator { return &Operator{Name: name} }

// Resource adds a resource to watch. The name is as in kubectl, for example "deployments.v1.apps"; without a
// version it means the version that the server prefers. The function define declares the handlers and the kinds of
// children; it is called at once. If the configuration has left this resource open (see Resource.Open), define goes
// on with that resource. [Operator.Validate] reports an invalid name.
func (op *Operator) Resource(name string, define func(*Resource)) *Resource {
	parsed, err := ParseResourceName(name)
	r := op.open(parsed)
	if r == nil {
		r = &Resource{op: op, Name: parsed, fault: err}
		op.resources = append(op.resources, r)
	}
	r.Open = false
	if define != nil {
		r.defining = true
		define(r)
		r.defining = false
	}
	r.described()
	return r
}

// open returns the open resource of that name, or nil. The name may lack the version.
func (op *Operator) open(name ResourceName) *Resource {
	i := slices.IndexFunc(op.resources, func(r *Resource) bool {
		return r.Open && r.Name.Objects() == name.Objects() && (name.Version == "" || name.Version == r.Name.Version)
	})
	if i < 0 {
		return nil
	}
	return op.resources[i]
}

// Resources returns the resources in declared order. The slice is the caller's.
func (op *Operator) Resources() []*Resource { return slices.Clone(op.resources) }

// Handled returns the resources that have handlers, in declared order. The others only have a schema, for objects that
// handlers of other resources read. The slice is the caller's.
func (op *Operator) Handled() []*Resource {
	return slices.DeleteFunc(op.Resources(), func(r *Resource) bool { return len(r.handlers) == 0 })
}

// reads reports whether another resource, or an index, reads the objects of the resource.
func (op *Operator) reads(of *Resource) bool {
	is := func(name ResourceName) bool { return name.Objects() == of.Name.Objects() }
	return slices.ContainsFunc(op.indexes, func(x *IndexSpec) bool { return is(x.Resource) }) ||
		slices.ContainsFunc(op.resources, func(other *Resource) bool {
			return other != of && (slices.ContainsFunc(other.relations, func(relation Relation) bool { return is(relation.Resource) }) ||
				slices.ContainsFunc(other.owns, func(owned ownedKind) bool { return is(owned.Name) }))
		})
}

// Handlers returns every handler with its resource, in declared order.
func (op *Operator) Handlers() iter.Seq2[*Resource, *Handler] {
	return func(yield func(*Resource, *Handler) bool) {
		for _, r := range op.resources {
			for _, h := range r.handlers {
				if !yield(r, h) {
					return
				}
			}
		}
	}
}

// Prefix returns the prefix of the operator's marks on objects: its name and its domain.
func (op *Operator) Prefix() string {
	return op.Name + "." + cmp.Or(op.Domain, bookkeeping.Domain)
}

// Finalizer returns the name of the operator's finalizer.
func (op *Operator) Finalizer() string { return op.Prefix() + "/finalizer" }

// StateAnnotation returns the key of the annotation with the progress of an object: what its handlers have handled, and
// their progress.
func (op *Operator) StateAnnotation() string { return op.Prefix() + "/state" }

// PausedAnnotation returns the key of the annotation with which a person pauses an object, or the objects of a namespace.
// Its value is the reason.
func (op *Operator) PausedAnnotation() string { return op.Prefix() + "/paused" }

// PausedDeletionsAnnotation returns the key of the annotation that says whether deletions go on during such a pause.
func (op *Operator) PausedDeletionsAnnotation() string { return op.Prefix() + "/paused-deletions" }

// RetryAnnotation returns the key of the annotation with which a person has handlers run now that failed or wait. Its value is the
// id of a handler, several with commas between them, or "*".
func (op *Operator) RetryAnnotation() string { return op.Prefix() + "/retry" }

// ScopeAnnotation returns the key of the annotation on the leader's lock that has the operator's scope.
func (op *Operator) ScopeAnnotation() string { return op.Prefix() + "/scope" }

// AppliedAnnotation returns the key of the annotation on a child that has the digest of its template.
func (op *Operator) AppliedAnnotation() string { return op.Prefix() + "/applied" }
