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

// CacheProfile says how objects of a resource are held in memory.
type CacheProfile string

// The cache profiles.
const (
	// CacheCompact holds metadata for routing and the object's JSON, compressed. The default.
	CacheCompact CacheProfile = "compact"
	// CacheMetadata watches metadata alone: handlers see no spec and no status.
	CacheMetadata CacheProfile = "metadata"
	// CacheLive holds keys alone; each pass reads the object from the server.
	CacheLive CacheProfile = "live"
)

// Choices returns the profiles, for those who read one.
func (CacheProfile) Choices() (what string, words []string) {
	return "cache profile", []string{string(CacheCompact), string(CacheMetadata), string(CacheLive)}
}

// Resource is a watched resource with its handlers. The fields may be set in the function given
// to [Operator.Resource].
type Resource struct {
	// Name is the resource as it was declared.
	Name ResourceName
	// Resync is the period after which each object is looked at again, per object and with up to
	// a tenth of jitter. Zero means never.
	Resync time.Duration
	// Workers is how many objects are handled at once. Defaults to DefaultWorkers.
	Workers int
	// Lifecycle, when set, chooses which handlers of an object run in one pass. By default all that are due do, in declared
	// order. See [OneByOne].
	Lifecycle Lifecycle
	// Cache defaults to CacheCompact.
	Cache CacheProfile
	// Keep, for CacheCompact, limits what is held to these fields; metadata is always held. By default it is what
	// handlers read and set where that is known of all of them, as it is of many in YAML, and all else; see [Operator.Held].
	// A type of [Typed] that has more fields is a fault; what other Go code reads, its author must list.
	Keep []Path
	// KeepAt is where a configuration says so, for messages.
	KeepAt string
	// Ignore are paths whose changes are none to handlers, as those of fields that another tool writes time and again: no handler
	// runs for one, and Old and Diff leave it out. A handler that names or reads such a path is a fault. Handlers with cause [Event]
	// hear of every change.
	Ignore []Path
	// LabelSelector and FieldSelector are pushed to the server: what they do not select does not
	// exist for this operator. Both in kubectl's form. Empty means everything.
	LabelSelector, FieldSelector string
	// ObservedGeneration says that status.observedGeneration of this resource belongs to this
	// operator: that an object was handled is kept there and not in an annotation, which saves a
	// request where handlers set status. It can be used when every update handler that is not
	// level-triggered looks at the field spec and has NoOld.
	ObservedGeneration bool

	// Ready says whether the engine keeps the condition [Ready] of the objects. By default it does where [Resource.KeepsReady] says.
	Ready *bool

	// CRD, when set, is the CustomResourceDefinition that the configuration describes, in its JSON
	// form. See package dsl/crd.
	CRD map[string]any
	// Open says that the configuration has the resource's schema and no handlers: they are declared in Go, with
	// [Operator.Resource], which ends that.
	Open bool
	// CRDFault, when set, gives what is wrong with the CRD its place in the configuration.
	CRDFault func(error) error
	// Makes are the children that handlers make under names, so that expressions that use them can be
	// checked. Their kinds are declared apart, with [Resource.OwnsKind].
	Makes []shape.NamedChild
	// Checks hold the configuration against schemas; see [Resource.CheckSchemas].
	Checks []shape.Check
	// Exists hold the configuration against the kinds that there are, where these are known.
	Exists []shape.Check

	op        *Operator // nil for one that stands alone
	owns      []ownedKind
	relations []Relation
	handlers  []*Handler
	fault     error
	wrongOwns []error
	// describe makes the CRD, see Describe. It finds what is wrong, and waits while the resource is being defined.
	describe func(*Resource) (crd map[string]any, wrong []*shape.Misfit)
	wrongCRD []*shape.Misfit
	defining bool
}

// Describe has a function make the resource's CRD, when the function given to [Operator.Resource] has returned, and again
// when a machine is added later. What the function finds wrong is reported by [Operator.Validate]. Describe of package
// dsl/crd makes it from a Go type.
func (r *Resource) Describe(by func(*Resource) (crd map[string]any, wrong []*shape.Misfit)) {
	if r.CRD != nil || r.describe != nil {
		by = func(r *Resource) (map[string]any, []*shape.Misfit) {
			return r.CRD, []*shape.Misfit{{Message: "there is a schema already"}}
		}
	}
	r.describe = by
	r.described()
}

// described makes the CRD from what is declared so far.
func (r *Resource) described() {
	if r.describe != nil && !r.defining && r.fault == nil {
		r.CRD, r.wrongCRD = r.describe(r)
	}
}

// KeepsGeneration reports whether status.observedGeneration says what was handled. A cache of metadata alone does not show
// it, so there the annotation says that.
func (r *Resource) KeepsGeneration() bool { return r.ObservedGeneration && r.Cache != CacheMetadata }

// Recalls reports whether status.observedGeneration may say what was handled, because this version of the operator keeps it there,
// or because an earlier one may have done so.
func (r *Resource) Recalls() bool { return slices.ContainsFunc(r.handlers, (*Handler).Stores) }

// Owns declares resources whose objects are children: objects with a controller owner reference
// to one of this resource. They are watched, a change of one runs handlers with cause [Child],
// and Request.Children reads them from the cache.
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

// OwnsKind is Owns for a kind, as in OwnsKind(appsv1.SchemeGroupVersion.WithKind("Deployment")).
// A kind whose resource is declared already adds nothing.
func (r *Resource) OwnsKind(kinds ...schema.GroupVersionKind) {
	for _, kind := range kinds {
		guess, _ := meta.UnsafeGuessKindToResource(kind)
		r.own(ownedKind{ResourceName{Resource: guess.Resource, Version: guess.Version, Group: guess.Group}, kind})
	}
}

// ownedKind is a kind of children; see [Resource.Owned].
type ownedKind struct {
	Name ResourceName
	Kind schema.GroupVersionKind
}

// own adds a kind of children unless it is there.
func (r *Resource) own(kind ownedKind) {
	if !slices.ContainsFunc(r.owns, func(known ownedKind) bool {
		return known.Name.Resource == kind.Name.Resource && known.Name.Group == kind.Name.Group
	}) {
		r.owns = append(r.owns, kind)
	}
}

// Owned returns what was declared with Owns and OwnsKind, in order: the resource as it was declared, or as its kind is
// most often spelt. The kind is empty unless it was declared by kind: it then counts, and not the name.
func (r *Resource) Owned() iter.Seq2[ResourceName, schema.GroupVersionKind] {
	return func(yield func(ResourceName, schema.GroupVersionKind) bool) {
		for _, owned := range r.owns {
			if !yield(owned.Name, owned.Kind) {
				return
			}
		}
	}
}

// Owner reports whether the resource owns anything.
func (r *Resource) Owner() bool { return len(r.owns) > 0 }

// Handlers returns the handlers in declared order. The slice is the caller's.
func (r *Resource) Handlers() []*Handler { return slices.Clone(r.handlers) }

// OnCreate adds a handler for objects that were never handled.
func (r *Resource) OnCreate(id string, fn Func, options ...Option) {
	r.On([]Cause{Create}, id, fn, options...)
}

// OnUpdate adds a handler for objects whose essence changed.
func (r *Resource) OnUpdate(id string, fn Func, options ...Option) {
	r.On([]Cause{Update}, id, fn, options...)
}

// OnField adds a handler for objects in which the field changed since it was last handled. It is
// OnUpdate with [Field]: the first value of a new object is a create, not an update.
func (r *Resource) OnField(field, id string, fn Func, options ...Option) {
	r.On([]Cause{Update}, id, fn, append([]Option{Field(field)}, options...)...)
}

// OnDelete adds a handler for objects that are being deleted. The operator's finalizer holds each
// object that the handler's filters match until the handler has succeeded; see [NoFinalizer] and
// [Release].
func (r *Resource) OnDelete(id string, fn Func, options ...Option) {
	r.On([]Cause{Delete}, id, fn, options...)
}

// OnResume adds a handler for objects that were handled before this process saw them first.
func (r *Resource) OnResume(id string, fn Func, options ...Option) {
	r.On([]Cause{Resume}, id, fn, options...)
}

// OnResync adds a handler that runs for each object every Resync.
func (r *Resource) OnResync(id string, fn Func, options ...Option) {
	r.On([]Cause{Resync}, id, fn, options...)
}

// OnEvent adds a handler that runs for every event of the watch, status and own writes included. See [Event].
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

// OnReconcile adds a level-triggered handler: it runs whenever there may be something to do, but
// not for deletion. See [ReconcileCauses].
func (r *Resource) OnReconcile(id string, fn Func, options ...Option) {
	r.On([]Cause{Reconcile}, id, fn, options...)
}

// On adds a handler for the causes given; the other On verbs are short for it. Handlers run in
// declared order. Faults (an id used twice, no causes, a faulty option) are reported by
// [Operator.Validate]. On panics when fn is nil.
func (r *Resource) On(causes []Cause, id string, fn Func, options ...Option) {
	h := Handler{ID: id, Causes: causes, Func: fn, Retries: Unlimited}
	for _, set := range options {
		set(&h)
	}
	r.Add(h)
}

// Knowledge is what a resource is held against.
type Knowledge struct {
	// OfResource and OfKind find schemas, nil for those that they do not have.
	OfResource func(ResourceName) *spec.Schema
	OfKind     func(schema.GroupVersionKind) *spec.Schema
	// Kinds are the kinds that there are; nil when that is not known.
	Kinds shape.Kinds
}

// CheckSchemas holds the resource against what is known. It returns what does not fit, and what may be right all the
// same.
func (r *Resource) CheckSchemas(k Knowledge) (faults, warnings []error) {
	s := shape.Schemas{Children: map[string]shape.Shape{}, Related: map[string]shape.Shape{}, Indexes: r.op.indexShapes(k), Kinds: k.Kinds}
	s.Self = shape.Shape{Schema: k.OfResource(r.Name), Kept: r.Kept()}
	checks := r.Checks
	if k.Kinds != nil {
		checks = slices.Concat(r.Exists, r.Checks)
		s.Kind, _ = k.Kinds.Resource(r.Name.GVR(), true) // the fault is told by the check of the name
	}
	for _, c := range r.Makes {
		child := shape.Shape{List: c.List}
		if !c.Kind.Empty() {
			child.Schema = k.OfKind(c.Kind)
		}
		s.Children[c.Name] = child
	}
	for _, relation := range r.relations {
		s.Related[relation.Name] = shape.Shape{Schema: k.OfResource(relation.Resource), List: !relation.One}
	}
	return held(checks, s)
}

// Add adds a handler that is at hand, as [Resource.On] does. It returns the one that is added, whose causes are
// those that Handler.Causes stands for.
func (r *Resource) Add(h Handler) *Handler {
	if h.Func == nil && h.Daemon == nil && h.Machine == nil {
		panic("dsl: handler " + h.ID + " of " + r.Name.String() + " has a nil function")
	}
	h.settle()
	h.of = r
	r.handlers = append(r.handlers, &h)
	if all := r.Machines(); h.Machine != nil && len(all) > 1 {
		for i, m := range all {
			if i == len(all)-1 || len(all) == 2 { // the first one was alone until now
				m.Conditions = append(m.Conditions, m.Machine.ReadyCondition(false))
			}
		}
	}
	if h.Machine != nil {
		r.described()
	}
	return &h
}

// Relation names objects that handlers of a resource look at without owning them. They are
// watched: when what a relation selects for an object changes, handlers of that object run with
// cause [RelatedChange].
type Relation struct {
	// Name is unique within the resource: handlers and expressions use it. A CEL identifier.
	Name string
	// Resource is watched, in the operator's scope.
	Resource ResourceName
	// LabelSelector is pushed to the server, in kubectl's form: what it does not select is not
	// held. Empty means everything.
	LabelSelector string
	// One says that the relation selects one object at most, by its name.
	One bool
	// Select says which of the objects belong to the subject's object; the subject has no children and no
	// related objects. It must be quick. Nil means all of them. When it fails, handlers that ask for
	// the relation get its error.
	Select func(s *Subject) (Selection, error)
}

// Selection picks objects of a relation.
type Selection struct {
	// Namespace is the only one to look into; empty means all, or that the resource has none.
	Namespace string
	// Names are the only ones wanted; nil means any.
	Names []string
	// Labels selects by labels; nil means any.
	Labels labels.Selector
	// Match, when set, must hold for an object. An error counts as no.
	Match func(o *unstructured.Unstructured) (bool, error)
}

// Related gives handlers what the relations select.
type Related interface {
	// Get returns the objects that the relation of that name selects, from the cache, sorted by
	// namespace and name. Each is a private copy.
	Get(name string) ([]*unstructured.Unstructured, error)
	// Relations returns the resource's relations.
	Relations() []Relation
	// Absent names the object that the relation of that name selects by its name, as in ConfigMap shop/settings, when it is
	// not there. It is empty for other relations, and where the name may be a Secret's value.
	Absent(name string) string
}

// Relates declares objects that this resource's handlers look at. A faulty relation is reported by
// [Operator.Validate].
func (r *Resource) Relates(relation Relation) { r.relations = append(r.relations, relation) }

// Relations returns the relations in declared order. The slice is the caller's.
func (r *Resource) Relations() []Relation { return slices.Clone(r.relations) }
