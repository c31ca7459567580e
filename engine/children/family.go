// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Inbox keeps the changes that concern owners between reconciles; see [inbox.Inbox].
type Inbox interface {
	OnChildEvent(owner inbox.Key, ev watch.Event, idle bool)
	Echo(owner inbox.Key, w inbox.Write, e inbox.Echo)
	IsDeleting(key inbox.Key, uid types.UID) bool
	Wake(uid types.UID)
	Grant()
}

// Settings are the dependencies of a [Family]. All are required.
type Settings struct {
	Operator *dsl.Operator
	Resource *dsl.Resource
	// Handlers are the handlers of the resource, in declared order.
	Handlers []*dsl.Handler
	Log      logr.Logger
	Metrics  *ops.Metrics
	Events   *events.Recorder
	Catalog  *discovery.Catalog
	Renewer  *apply.Renewer
	Inbox    Inbox
	Register *prune.Register
	// Limits bound the deletions that begin.
	Limits *limits.Deletions
	// Ending knows the namespaces that are being deleted.
	Ending *notfound.Namespaces
	// Own is the source of the owners. Feeds creates the sources of kinds of children.
	Own     *source.Source
	Sources *source.Factory
	Host    Host
}

// Host gives children access to the process that runs their owners' resource.
type Host interface {
	// Client returns the client of a resource, in a namespace unless that is empty.
	Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface
	// Read reads one object from the API server. It returns nil if the object is gone.
	Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error)
	// Refusal returns an error if the operator reserves a place for itself, so that no child may be there; else nil.
	Refusal(gvr schema.GroupVersionResource, key cache.ObjectName) error
	// Sources returns all sources of the resource, including the sources of children.
	Sources() []*source.Source
	// OnWrite is called for each write to an object by the reconcile of the object with this key. The written object
	// may have reconciles of its own.
	OnWrite(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured)
}

// Family knows the children of one resource's objects. Its methods may be called at any time from any goroutine.
type Family struct {
	settings    Settings
	names       names
	looks       looks
	renamer     *patch.Renamer
	kinds       kinds
	inventories inventories
	sweeper     *prune.Pruner
	// Retired are kinds that earlier versions of the resource owned, and this one does not.
	Retired *prune.Retired
}

// New creates the sources of the kinds that the resource owns. It does not start them.
func New(s Settings) *Family {
	f := &Family{settings: s, names: namesOf(s.Operator), looks: looksOf(s.Operator, s.Resource), renamer: patch.NewRenamer(s.Operator), kinds: kinds{own: s.Own}}
	for name, of := range s.Resource.Owned() {
		handler := &kindHandler{family: f}
		handler.feed = s.Sources.New(source.Settings{
			Name: name, Kind: of, Source: watch.Source{Form: cached.FormOf(s.Resource.HeldOwned(name))},
			Log: s.Log.WithValues("child", name.String()), Handler: handler,
		})
		f.kinds.feeds = append(f.kinds.feeds, handler.feed)
	}
	f.sweeper = prune.NewPruner(s.Resource, s.Handlers)
	f.Retired = prune.NewRetired(prune.RetiredSettings{
		Register: s.Register, Resource: s.Resource.Name, Log: s.Log, Sources: s.Sources, Granted: s.Inbox, Family: f,
	})
	f.kinds.retired = f.Retired
	return f
}

// kindHandler handles the events of children of one kind.
type kindHandler struct {
	family *Family
	feed   *source.Source
}

// OnEvent implements [source.Handler].
func (k *kindHandler) OnEvent(ev watch.Event) {
	if !k.family.kinds.repeats(k.feed) {
		k.family.OnEvent(k.feed, ev)
	}
}

// Grant implements [source.Handler].
func (k *kindHandler) Grant() { k.family.settings.Inbox.Grant() }

// Kinds returns the sources of the kinds that the resource owns.
func (f *Family) Kinds() []*source.Source { return f.kinds.feeds }

// Owns reports whether the resource owns a kind, as far as the API server's discovery is known.
func (f *Family) Owns(kind schema.GroupKind) bool { return f.kinds.owns(kind) }

// Clear forgets all owners.
func (f *Family) Clear() { f.inventories.clear() }

// Forget forgets an owner that is gone.
func (f *Family) Forget(owner inbox.Key) { f.inventories.set(owner, nil) }

// HasInventory reports whether an owner has an inventory of children.
func (f *Family) HasInventory(owner *cached.Object) bool { return f.names.hasInventory(owner) }

// epoch returns how often the API server's versions had gone back when the cache of an owner was listed.
func (f *Family) epoch(owner inbox.Key) uint64 {
	if h := f.settings.Own.Informer(owner.Namespace); h != nil {
		return h.Epoch()
	}
	return 0
}

// OnEvent handles an event of an object that may be a child: its owner gets the event. The event is idle if no handler
// looks at the changed fields. If the object has changed owners, both owners get it.
func (f *Family) OnEvent(kind *source.Source, ev watch.Event) {
	defer f.settings.Inbox.Wake(ev.UID)
	owner, before := f.ownerKey(kind, ev.Object), f.ownerKey(kind, ev.Old)
	kind.Found(ev.Key)
	if owner != nil {
		f.settings.Inbox.OnChildEvent(*owner, ev, f.looks.idle(ev) && f.lives(*owner))
	}
	if before != nil && (owner == nil || *owner != *before) {
		f.settings.Inbox.OnChildEvent(*before, ev, false)
	}
}

// lives reports whether an owner exists and is not being deleted.
func (f *Family) lives(owner inbox.Key) bool {
	o, found := f.settings.Own.Get(owner)
	return found && o.GetDeletionTimestamp() == nil
}

// ownerKey returns the key of the object of this resource that o is a child of. That is the controller of o or, if it
// has none, the owner that its label and annotation name together. The named owner may have another uid, if it is a new
// object of the same name. An owner reference from near the owner counts by itself; see [ownership.Place.IsTrusted]. For any
// other tie, the owner's inventory must list o: anybody can write these marks, and could wake owners with them.
func (f *Family) ownerKey(kind *source.Source, o *cached.Object) *inbox.Key {
	if o == nil {
		return nil
	}
	name, referred, label := f.names.of(o).OwnerOf(o, f.settings.Own.Resource().Namespaced)
	if name.Name == "" || name.Kind != f.settings.Own.Resource().GroupKind() {
		return nil
	}
	key := inbox.Key{Namespace: name.Namespace, Name: name.Name}
	if !referred && !f.labels(key, name, label) {
		return nil
	}
	place := ownership.Place{Kind: kind.Resource().GroupKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	if (!referred || !name.IsTrusted(place.Namespace)) && !f.inventories.lists(key, place) {
		return nil
	}
	return &key
}

// labels reports whether an owner label belongs to the object that has the key now, or is being deleted under it:
// another object may have its name now. The label of retained children has no uid, so it belongs to any object of the
// name.
func (f *Family) labels(key inbox.Key, name ownership.Place, label string) bool {
	if label == name.Retained() {
		return true
	}
	owner, found := f.settings.Own.Get(key)
	return found && string(owner.GetUID()) == label || f.settings.Inbox.IsDeleting(key, types.UID(label))
}

// Look returns the delay until the next attempt to read children that could not be read.
func (f *Family) Look() time.Duration {
	for _, kind := range f.kinds.feeds {
		if len(kind.Informers("")) > 0 && kind.Readable("") != nil {
			return source.ListingInterval
		}
	}
	return inbox.Patience
}
