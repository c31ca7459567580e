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

// Operator is one loaded configuration: its name, its resources, its handlers.
type Operator struct {
	// Name is the operator's name, a DNS label. The field manager, finalizer, annotation prefix
	// and Event source derive from it. Required.
	Name string
	// Domain ends the prefix of the operator's annotations and its finalizer. Defaults to
	// handwerk.dev.
	Domain string
	// Was are the names that the operator had in earlier versions, each alone or, where its domain was another one, as
	// the whole prefix of its marks: old-name or old-name.example.com. The engine moves what it finds under them on
	// objects to the operator's name, and does not lead while another process leads under one of them.
	Was []string
	// Scope says where the operator works. Defaults to the whole cluster.
	Scope Scope
	// Settings are the operator's own; all have defaults.
	Settings Settings
	// Skipped are the documents that were read with the configuration and are no part of an operator, each with its
	// place. The engine says them once when it starts.
	Skipped []string
	// Checks hold the configuration of what runs for the operator as a whole against schemas; see [Operator.CheckSchemas].
	Checks []shape.Check
	// Placed gives what is said of a part of the operator its place in the configuration that declares it. It returns
	// other faults as they are. Nil where there is no configuration.
	Placed func(*Fault) error

	resources  []*Resource
	indexes    []*IndexSpec
	activities []*Handler
}

// Scope says where an operator works.
type Scope struct {
	// Namespaces are names and globs ("team-*"), live while the operator runs. One that begins
	// with "!" takes out what it matches. Empty means the whole cluster. Resources that have no
	// namespace are not affected.
	Namespaces []string
}

// CheckNamespace reports a namespace, or a glob of some, as in team-* or !team-old, that there cannot be.
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

// badGlob says what is wrong with a glob of names. One that can match no name is not sound.
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

// Settings are an operator's settings; the zero value means the defaults.
type Settings struct {
	LeaderElection LeaderElection
	// GracePeriod is how long handlers may go on after a stop was asked for. Defaults to 20 s,
	// which leaves 10 s of a pod's usual termination period for the rest.
	GracePeriod time.Duration
	// QPS limits the requests per second of this process to the API server, with bursts up to
	// Burst. Zero means no limit: API Priority and Fairness does it on the server.
	QPS float32
	// Burst is the number of requests that may exceed QPS for a moment. Defaults to twice QPS.
	Burst int
	// Events says which Events there are. Defaults to EventsWarnings.
	Events EventsMode
}

// EventsMode says which Events an operator sends of its own accord. What handlers report is always sent.
type EventsMode string

// The modes of Events.
const (
	// EventsWarnings: of handlers that fail, and of what is held.
	EventsWarnings EventsMode = "warnings"
	// EventsChanges: of children that were created and deleted, too.
	EventsChanges EventsMode = "changes"
)

// Choices returns the modes, for those who read one.
func (EventsMode) Choices() (what string, words []string) {
	return "mode", []string{string(EventsWarnings), string(EventsChanges)}
}

// What holds where nothing is given.
const (
	// DefaultGracePeriod is that of [Settings].
	DefaultGracePeriod = 20 * time.Second
	// DefaultWorkers are those of [Resource]: how many of its objects are handled at once.
	DefaultWorkers = 4
)

// LeaderMode says how several processes of one operator agree on who works.
type LeaderMode string

// The modes of leadership.
const (
	// LeaderNone: every process works. The default; right for one replica.
	LeaderNone LeaderMode = "none"
	// LeaderLease: the holder of a Lease works, the others wait with warm caches.
	LeaderLease LeaderMode = "lease"
	// LeaderLife: the first pod to own the lock works until that pod is gone.
	LeaderLife LeaderMode = "life"
)

// Choices returns the modes, for those who read one.
func (LeaderMode) Choices() (what string, words []string) {
	return "mode", []string{string(LeaderNone), string(LeaderLease), string(LeaderLife)}
}

// LeaderElection says how the leader is found.
type LeaderElection struct {
	// Mode defaults to LeaderNone.
	Mode LeaderMode
	// Name is the lock's name. Defaults to the operator's name with "-leader" behind it.
	Name string
	// Namespace is the lock's namespace. Defaults to the namespace of the pod; outside a cluster
	// it is required.
	Namespace string
	// LeaseDuration is how long a standby waits after the last renewal it saw. Defaults to 15 s.
	// Only for LeaderLease, as the next two.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it gives up. Defaults to 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between tries. Defaults to 2 s.
	RetryPeriod time.Duration
}

// LeaderLock is the name of the lock that processes of the operator agree by on who leads.
func (op *Operator) LeaderLock() string {
	return cmp.Or(op.Settings.LeaderElection.Name, op.Name+"-leader")
}

// Register is the name of the ConfigMap that has the kinds of which there may be children of the operator.
func (op *Operator) Register() string { return op.Name + "-children" }

// DigestKey is the name of the Secret that has the key with which digests of the operator's Secrets are made. It lies in the
// operator's namespace.
func (op *Operator) DigestKey() string { return op.Name + "-key" }

// OwnPlace is where something is that the operator keeps for itself.
type OwnPlace struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// What says what is there, for people.
	What string
}

// OwnPlaces returns the places of all that the operator keeps for itself in its namespace, also under its earlier names. Handlers may
// not write there. It returns nil for an operator without a namespace.
func (op *Operator) OwnPlaces(namespace string) (out []OwnPlace) {
	if namespace == "" {
		return nil
	}
	for _, o := range append(op.Earlier(), op) {
		for _, place := range []OwnPlace{
			{schema.GroupResource{Resource: "configmaps"}, namespace, o.Register(), "register of kinds of children"},
			{schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, namespace, o.LeaderLock(), "leader's lock"},
			{schema.GroupResource{Resource: "secrets"}, namespace, o.DigestKey(), "key of digests"},
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

// Resource adds a resource to watch. The name is kubectl's spelling, as in
// "deployments.v1.apps"; without a version it means the one that the server prefers. The
// function define declares what the resource owns and its handlers; it is called at once. A
// faulty name is reported by [Operator.Validate]. A resource that is [Resource.Open] is not added
// again: define goes on with it.
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

// open returns the open resource of that name, which may be without its version, nil when there is none.
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

// Prefix is what the operator's marks on objects begin with: its name and its domain.
func (op *Operator) Prefix() string {
	return op.Name + "." + cmp.Or(op.Domain, bookkeeping.Domain)
}

// Finalizer is the name of the operator's finalizer.
func (op *Operator) Finalizer() string { return op.Prefix() + "/finalizer" }

// StateAnnotation is the key of the one annotation that holds the book of an object: what its handlers have
// handled, and how far they have come with the rest.
func (op *Operator) StateAnnotation() string { return op.Prefix() + "/state" }

// ScopeAnnotation is the key of the annotation by which the leader's lock tells where the operator works.
func (op *Operator) ScopeAnnotation() string { return op.Prefix() + "/scope" }

// AppliedAnnotation is the key of the annotation by which a child tells what it was applied from.
func (op *Operator) AppliedAnnotation() string { return op.Prefix() + "/applied" }
