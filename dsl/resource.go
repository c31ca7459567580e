// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// CacheProfile says which parts of a resource's objects are kept in memory.
type CacheProfile string

// The cache profiles.
const (
	// CacheCompact keeps the metadata, and the object's JSON in compressed form. The default.
	CacheCompact CacheProfile = "compact"
	// CacheMetadata watches metadata alone: handlers neither see nor write spec and status.
	CacheMetadata CacheProfile = "metadata"
	// CacheLive keeps keys alone; each reconcile reads the object from the server.
	CacheLive CacheProfile = "live"
)

// Choices returns the cache profiles.
func (CacheProfile) Choices() (what string, words []string) {
	return "cache profile", []string{string(CacheCompact), string(CacheMetadata), string(CacheLive)}
}

// Resource is a watched resource with its handlers. The fields may be set in the function given
// to [Operator.Resource].
type Resource struct {
	// Name is the resource as it was declared.
	Name ResourceName
	// Resync is the period after which each object is handled again, per object and with up to a tenth of jitter.
	// Zero means never.
	Resync time.Duration
	// Workers is how many objects are handled at once. Defaults to DefaultWorkers.
	Workers int
	// Lifecycle, when set, chooses which handlers of an object run in one reconcile. By default all due handlers run, in
	// declared order. See [OneByOne].
	Lifecycle Lifecycle
	// Cache defaults to CacheCompact.
	Cache CacheProfile
	// Keep, for CacheCompact, limits the cache to these fields, the metadata, status.conditions and
	// status.observedGeneration. By default the cache holds the fields that handlers read and set, if all of these are
	// known, as they mostly are in YAML; otherwise it holds whole objects. See [Operator.Held].
	//
	// Handlers read and write what is held, and nothing else. A field that is not held is a fault if an expression
	// reads it, a configuration sets it, a type of [Typed] has it, or [Reads] lists it. For other Go code, list the
	// fields that it reads and writes: it sees nothing in the place of others, and a write of others fails for good.
	Keep []Path
	// KeepAt is the place of Keep in a configuration, for messages.
	KeepAt string
	// Ignore are paths whose changes handlers ignore, as for a field that another tool writes repeatedly: such a
	// change runs no handler, and Old and Diff do not have it. It is a fault if a handler names or reads such a
	// path. Handlers with cause [Event] run for every change.
	Ignore []Path
	// LabelSelector and FieldSelector are sent to the server, in kubectl's form. Objects that they do not select do
	// not exist for this operator. Empty means everything.
	LabelSelector, FieldSelector string
	// NamespaceSelector selects the namespaces in whose objects admission handlers take an interest, in kubectl's form. It is only
	// for resources without other handlers. Empty means those of the operator's scope.
	NamespaceSelector string
	// Limits, when set, are the limits of this resource alone. By default it shares the limits of the operator's settings.
	Limits *Limits
	// Ready says whether the engine sets the condition [Ready] of the objects. [Resource.KeepsReady] describes the
	// default.
	Ready *bool

	// CRD, when set, is the configuration's CustomResourceDefinition, in JSON form. See package dsl/crd.
	CRD map[string]any
	// Open says that the configuration has the resource's schema and no handlers. Handlers are declared in Go with
	// [Operator.Resource], which resets Open.
	Open bool
	// CRDFault, when set, adds to a fault of the CRD its place in the configuration.
	CRDFault func(error) error
	// Makes are the named children that handlers apply. Expressions that use them are checked against it. Their
	// kinds are declared separately, with [Resource.OwnsKind].
	Makes []shape.NamedChild
	// Checks check the configuration against schemas; see [Resource.CheckSchemas].
	Checks []shape.Check
	// Exists check the configuration against the kinds that exist, if these are known.
	Exists []shape.Check

	op        *Operator // nil for a resource without an operator
	owns      []ownedKind
	relations []Relation
	handlers  []*Handler
	// admissions are the admission handlers.
	admissions []*Handler
	// conversions are for further versions.
	conversions []Conversion
	fault       error
	wrongOwns   []error
	// describe makes the CRD and finds its faults; see Describe. It runs after the resource has been defined.
	describe func(*Resource) (crd map[string]any, wrong []*shape.Misfit)
	wrongCRD []*shape.Misfit
	defining bool
}

// Prefix returns the prefix of the operator's marks; empty without an operator.
func (r *Resource) Prefix() string {
	if r.op == nil {
		return ""
	}
	return r.op.Prefix()
}

// Describe sets a function that makes the resource's CRD. The function runs when the function given to
// [Operator.Resource] has returned, and again when a machine is added later. [Operator.Validate] reports the faults
// that it returns. Describe of package dsl/crd makes a CRD from a Go type.
func (r *Resource) Describe(by func(*Resource) (crd map[string]any, wrong []*shape.Misfit)) {
	if r.CRD != nil || r.describe != nil {
		by = func(r *Resource) (map[string]any, []*shape.Misfit) {
			return r.CRD, []*shape.Misfit{{Message: "there is a schema already"}}
		}
	}
	r.describe = by
	r.described()
}

// described makes the CRD from the declarations so far.
func (r *Resource) described() {
	if r.describe != nil && !r.defining && r.fault == nil {
		r.CRD, r.wrongCRD = r.describe(r)
	}
}

// Owns declares resources of children: objects with a controller owner reference to an object of this resource.
// They are watched, their changes run handlers with cause [Child], and Request.Children reads them from the cache.
func (r *Resource) Owns(names ...string) {
	for _, text := range names {
		name, err := ParseResourceName(text)
		if err != nil {
			r.wrongOwns = append(r.wrongOwns, err)
			continue
		}
		r.own(ownedKind{Name: name})
	}
}

// OwnsKind is Owns for a kind, as in OwnsKind(appsv1.SchemeGroupVersion.WithKind("Deployment")). It has no effect
// for a kind whose resource is declared already.
func (r *Resource) OwnsKind(kinds ...schema.GroupVersionKind) {
	for _, kind := range kinds {
		guess, _ := meta.UnsafeGuessKindToResource(kind)
		r.own(ownedKind{Name: ResourceName{Resource: guess.Resource, Version: guess.Version, Group: guess.Group}, Kind: kind})
	}
}

// ownedKind is a kind of children; see [Resource.Owned].
type ownedKind struct {
	Name ResourceName
	Kind schema.GroupVersionKind
	Holding
}

// own adds a kind of children, unless it is declared already.
func (r *Resource) own(kind ownedKind) {
	if !slices.ContainsFunc(r.owns, func(known ownedKind) bool {
		return known.Name.Resource == kind.Name.Resource && known.Name.Group == kind.Name.Group
	}) {
		r.owns = append(r.owns, kind)
	}
}

// Owned returns the resources and kinds that were declared with Owns and OwnsKind, in order. For OwnsKind, the kind
// counts and the name is a guess from the kind. For Owns, the kind is empty.
func (r *Resource) Owned() iter.Seq2[ResourceName, schema.GroupVersionKind] {
	return func(yield func(ResourceName, schema.GroupVersionKind) bool) {
		for _, owned := range r.owns {
			if !yield(owned.Name, owned.Kind) {
				return
			}
		}
	}
}

// Owner reports whether the resource has kinds of children.
func (r *Resource) Owner() bool { return len(r.owns) > 0 }

// Deletes reports whether handlers delete children, or run for deletions, so that [Limits] may bound them.
func (r *Resource) Deletes() bool {
	return r.Owner() || slices.ContainsFunc(r.handlers, func(h *Handler) bool { return h.On(Delete) })
}

// Handlers returns the handlers in declared order. The slice is the caller's.
func (r *Resource) Handlers() []*Handler { return slices.Clone(r.handlers) }

// OnCreate adds a handler for objects that were not handled before.
func (r *Resource) OnCreate(id string, fn Func, options ...Option) {
	r.On([]Cause{Create}, id, fn, options...)
}

// OnUpdate adds a handler for changes of the essence.
func (r *Resource) OnUpdate(id string, fn Func, options ...Option) {
	r.On([]Cause{Update}, id, fn, options...)
}

// OnField adds a handler for changes of the field since the handler handled it last. It is OnUpdate with [Field]:
// the first value of a new object is a create, and not an update.
func (r *Resource) OnField(field, id string, fn Func, options ...Option) {
	r.On([]Cause{Update}, id, fn, append([]Option{Field(field)}, options...)...)
}

// OnDelete adds a handler for objects that are being deleted. The operator's finalizer holds each
// object that the handler's filters match until the handler has succeeded; see [NoFinalizer] and
// [Release].
func (r *Resource) OnDelete(id string, fn Func, options ...Option) {
	r.On([]Cause{Delete}, id, fn, options...)
}

// OnResume adds a handler for objects that were handled before, and that this process sees for the first time.
func (r *Resource) OnResume(id string, fn Func, options ...Option) {
	r.On([]Cause{Resume}, id, fn, options...)
}

// OnResync adds a handler that runs for each object after each period of Resync.
func (r *Resource) OnResync(id string, fn Func, options ...Option) {
	r.On([]Cause{Resync}, id, fn, options...)
}

// OnEvent adds a handler that runs for every event of the watch, also for changes of the status and for own writes.
// See [Event].
func (r *Resource) OnEvent(id string, fn Func, options ...Option) {
	r.On([]Cause{Event}, id, fn, options...)
}

// OnChild adds a handler that runs when a child of the object changes. See [Resource.Owns].
func (r *Resource) OnChild(id string, fn Func, options ...Option) {
	r.On([]Cause{Child}, id, fn, options...)
}

// OnRelated adds a handler that runs when an object that a relation selects changes. See
// [Resource.Relates].
func (r *Resource) OnRelated(id string, fn Func, options ...Option) {
	r.On([]Cause{RelatedChange}, id, fn, options...)
}

// OnReconcile adds a level-triggered handler: it runs whenever there may be something to do, except for deletion.
// See [ReconcileCauses].
func (r *Resource) OnReconcile(id string, fn Func, options ...Option) {
	r.On([]Cause{Reconcile}, id, fn, options...)
}

// On adds a handler for the given causes; the other methods On… are short for it. Handlers run in declared order.
// [Operator.Validate] reports faults: an id used twice, no causes, a faulty option. On panics when fn is nil.
func (r *Resource) On(causes []Cause, id string, fn Func, options ...Option) {
	h := Handler{ID: id, Causes: causes, Func: fn, Retries: Unlimited}
	for _, set := range options {
		set(&h)
	}
	r.Add(h)
}

// Knowledge has the schemas and kinds that a resource is checked against.
type Knowledge struct {
	// OfResource and OfKind return schemas, or nil for unknown ones.
	OfResource func(ResourceName) *spec.Schema
	OfKind     func(schema.GroupVersionKind) *spec.Schema
	// Kinds are the kinds that exist; nil if that is not known.
	Kinds shape.Kinds
}

// CheckSchemas checks the resource against known schemas. It returns faults, and warnings for uncertain ones.
func (r *Resource) CheckSchemas(k Knowledge) (faults, warnings []error) {
	s := shape.Schemas{Children: map[string]shape.Shape{}, Related: map[string]shape.Shape{}, Indexes: r.op.indexShapes(k), Handlers: []string{}, Kinds: k.Kinds, OfKind: k.OfKind}
	for _, h := range r.handlers {
		if h.hasOutcome() {
			s.Handlers = append(s.Handlers, h.ID)
		}
	}
	s.Self = shape.Shape{Schema: k.OfResource(r.Name), Kept: r.Kept()}
	checks := r.Checks
	if k.Kinds != nil {
		checks = slices.Concat(r.Exists, r.Checks)
		s.Kind, _ = k.Kinds.Resource(r.Name.GVR(), true) // the check of the name reports the fault
	}
	for _, c := range r.Makes {
		child := shape.Shape{List: c.List}
		if !c.Kind.Empty() {
			child.Schema = k.OfKind(c.Kind)
		}
		s.Children[c.Name] = child
	}
	for _, relation := range r.relations {
		s.Related[relation.Name] = shape.Shape{Schema: k.OfResource(relation.Resource), List: !relation.One, Kept: relation.kept()}
	}
	return held(checks, s)
}

// Add adds a handler, as [Resource.On] does. It returns the added handler, with Handler.Causes expanded.
func (r *Resource) Add(h Handler) *Handler {
	if h.Func == nil && h.Daemon == nil && h.Machine == nil {
		panic("dsl: handler " + h.ID + " of " + r.Name.String() + " has a nil function")
	}
	h.settle()
	h.of = r
	r.handlers = append(r.handlers, &h)
	if all := r.Machines(); h.Machine != nil && len(all) > 1 {
		for i, m := range all {
			if i == len(all)-1 || len(all) == 2 { // the first one was the only one until now
				m.Known.Conditions = append(m.Known.Conditions, m.Machine.ReadyCondition(false))
			}
		}
	}
	if h.Machine != nil {
		r.described()
	}
	return &h
}

// Relation selects objects that handlers of a resource look at without owning them. These objects are watched: when
// the objects that a relation selects for an object change, handlers of that object with cause [RelatedChange] run.
type Relation struct {
	// Name is unique within the resource: handlers and expressions use it. A CEL identifier.
	Name string
	// Resource is watched, in the operator's scope.
	Resource ResourceName
	// Namespace and Object limit the relation to one namespace and to one name, for every object of the resource. The
	// operator watches nothing else of Resource for the relation, and needs no other right. Empty means any. Namespace
	// has no effect on resources without namespaces.
	Namespace, Object string
	// LabelSelector is sent to the server, in kubectl's form. Objects that it does not select are not held. Empty
	// means everything.
	LabelSelector string
	// Holding says how much the cache holds of each object. An expression that reads more is a fault.
	Holding
	// One says that the relation selects at most one object, by its name.
	One bool
	// Hidden, which [Resource.Relations] sets, says that the names of the selected objects may be values of Secrets, by which they
	// are chosen: texts for people do not have them.
	Hidden bool
	// After are the names of relations, declared before this one, whose objects Select reads in the subject's Related, which
	// has no others. When these objects change, Select is asked again.
	After []string
	// Select returns the selection for the subject's object. The subject has no children, and of related objects those of
	// After, which it must not change. It must be quick. Nil selects all objects. Its error is returned to handlers that read
	// the relation.
	Select func(s *Subject) (Selection, error)
}

// Selection picks objects of a relation.
type Selection struct {
	// Namespace limits the selection to one namespace. Empty means all namespaces, or a cluster-scoped resource.
	Namespace string
	// Names limit the selection to these names; nil means any.
	Names []string
	// Labels selects by labels; nil means any.
	Labels labels.Selector
	// Match, when set, must hold for an object. An error about one object fails the handlers that read the relation, as an
	// error of Select does: the selection is not known then.
	Match func(o *unstructured.Unstructured) (bool, error)
}

// Related reads the objects that the relations select.
type Related interface {
	// Get returns the objects that the relation of that name selects, from the cache, sorted by
	// namespace and name. Each is a private copy.
	Get(name string) ([]*unstructured.Unstructured, error)
	// Relations returns the resource's relations.
	Relations() []Relation
	// Absent names the object that the relation of that name selects by its name, as in ConfigMap shop/settings, if
	// it does not exist. It is empty for other relations, and if the name may be a value of a Secret.
	Absent(name string) string
}

// Relates declares objects that this resource's handlers look at. A faulty relation is reported by
// [Operator.Validate].
func (r *Resource) Relates(relation Relation) { r.relations = append(r.relations, relation) }

// Relations returns the relations in declared order. The slice is the caller's.
func (r *Resource) Relations() []Relation {
	out := slices.Clone(r.relations)
	for i := range out {
		out[i].Hidden = r.OfSecrets() || r.afterSecrets(out[i])
	}
	return out
}
