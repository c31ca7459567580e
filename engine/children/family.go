// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/notfound"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/prune"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// Box is what keeps what comes up for owners between passes; see [inbox.Box].
type Box interface {
	ChildSeen(owner inbox.Key, ev watch.Event)
	Echo(owner inbox.Key, child types.UID, version string)
	Departs(key inbox.Key, uid types.UID) bool
	Wake(uid types.UID)
	Grant()
}

// Settings are what the children of a resource's objects need of the outside. All are required.
type Settings struct {
	Operator *dsl.Operator
	Resource *dsl.Resource
	// Handlers are those that run for objects, in declared order.
	Handlers []*dsl.Handler
	Log      logr.Logger
	Metrics  *ops.Metrics
	Events   *events.Recorder
	Catalog  *catalog.Catalog
	Box      Box
	Register *prune.Register
	// Ending knows the namespaces that are being deleted.
	Ending *notfound.Namespaces
	// Own is the feed of the owners, and Feeds make those of kinds of children.
	Own   *feed.Feed
	Feeds *feed.Factory
	Host  Host
}

// Host is what children need of the process that runs their owners' resource.
type Host interface {
	// Client reaches a resource, in a namespace unless that is empty.
	Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface
	// Read reads one object from the API server. It is nil where the object is gone.
	Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error)
	// Refusal says why there can be no child at a place: the operator keeps it for itself. It is nil elsewhere.
	Refusal(gvr schema.GroupVersionResource, key cache.ObjectName) error
	// Feeds are all feeds of the resource, those of children among them.
	Feeds() []*feed.Feed
	// Announce is called for each write to an object, by a pass over the one with this key: the written one may have
	// passes of its own.
	Announce(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured)
}

// Family is what is known of the children of one resource's objects. Its methods may be called at any time by
// anybody.
type Family struct {
	settings Settings
	keys     ownership.Keys
	// earlier are the keys under the operator's earlier names. The renamer moves the marks that have them.
	earlier []ownership.Keys
	renamer *patch.Renamer
	feeds   []*feed.Feed
	sweeper *prune.Sweeper
	// Retired are kinds that the resource does not own any more.
	Retired *prune.Retired

	mu      sync.Mutex
	records map[inbox.Key]*ownership.Record // those of owners that have one, for events of children to find the owners by
}

// New prepares the feeds of the kinds that the resource owns. They are not running yet.
func New(s Settings) *Family {
	f := &Family{settings: s, keys: ownership.KeysOf(s.Operator), earlier: earlierKeys(s.Operator), renamer: patch.NewRenamer(s.Operator), records: map[inbox.Key]*ownership.Record{}}
	for name, of := range s.Resource.Owned() {
		handler := &kindHandler{family: f}
		handler.feed = s.Feeds.New(feed.Settings{Name: name, Kind: of, Log: s.Log.WithValues("child", name.String()), Handler: handler})
		f.feeds = append(f.feeds, handler.feed)
	}
	f.sweeper = prune.NewSweeper(s.Handlers)
	f.Retired = prune.NewRetired(prune.RetiredSettings{
		Register: s.Register, Resource: s.Resource.Name, Log: s.Log, Feeds: s.Feeds, Granted: s.Box, Family: f,
	})
	return f
}

// kindHandler handles the events of children of one kind.
type kindHandler struct {
	family *Family
	feed   *feed.Feed
}

// OnEvent implements [feed.Handler].
func (k *kindHandler) OnEvent(ev watch.Event) {
	if !k.family.repeats(k.feed) {
		k.family.Seen(k.feed, ev)
	}
}

// Grant implements [feed.Handler].
func (k *kindHandler) Grant() { k.family.settings.Box.Grant() }

// Kinds are the feeds of the kinds that the resource owns.
func (f *Family) Kinds() []*feed.Feed { return f.feeds }

// Clear forgets all owners.
func (f *Family) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = map[inbox.Key]*ownership.Record{}
}

// Forget forgets an owner that is gone.
func (f *Family) Forget(owner inbox.Key) { f.know(owner, nil) }

// know notes an owner's record; nil when it has none.
func (f *Family) know(owner inbox.Key, record *ownership.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if record == nil {
		delete(f.records, owner)
	} else {
		f.records[owner] = record
	}
}

// Recorded reports whether an owner has a record of children.
func (f *Family) Recorded(owner *cached.Object) bool {
	notes := owner.GetAnnotations()
	return notes[f.keys.Record] != "" || slices.ContainsFunc(f.earlier, func(keys ownership.Keys) bool { return notes[keys.Record] != "" })
}

// lists reports whether the record of an owner lists a place.
func (f *Family) lists(owner inbox.Key, place ownership.Place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records[owner].Lists(place)
}

// repeats reports whether a feed that was declared by kind brings in what another one, declared by
// name, does already: the plural of a kind is not always what one would guess.
func (f *Family) repeats(kind *feed.Feed) bool {
	return kind.ByKind() && slices.ContainsFunc(f.feeds, func(other *feed.Feed) bool {
		return !other.ByKind() && other.Serves(kind.Resource().GVR)
	})
}

// kinds yields the feeds of the kinds of which objects are known, each kind once.
func (f *Family) kinds(yield func(*feed.Feed) bool) {
	for _, kind := range f.feeds {
		if kind.Known() && !f.repeats(kind) && !yield(kind) {
			return
		}
	}
	for _, kind := range f.Retired.Feeds() {
		if kind.Known() && kind.Complete() == nil && !f.Owns(kind.OfKind()) && !yield(kind) {
			return
		}
	}
}

// complete returns why not all children can be seen; nil when they can.
func (f *Family) complete() error {
	for _, kind := range f.feeds {
		if err := kind.Complete(); err != nil {
			return fmt.Errorf("listing children: %w", err)
		}
	}
	return nil
}

// current returns why a child may be there that the caches do not show; nil when all of them are told of changes.
func (f *Family) current() error {
	if err := f.complete(); err != nil {
		return err
	}
	for kind := range f.kinds {
		for _, h := range kind.Informers("") {
			if since := h.State().Stale; !since.IsZero() {
				return fmt.Errorf("listing children: no watch of %s is open since %s", kind.Name(), since.Format(time.RFC3339))
			}
		}
	}
	return f.settled("listing children")
}

// settled returns an error while what is cached of owners and of their children may be from two states of the API server,
// because its versions have gone back: until all have listed again, it is not known which children are wanted.
func (f *Family) settled(what string) error {
	if f.settings.Own.Behind() {
		return watch.Behind(what, f.settings.Own.Name().String())
	}
	for kind := range f.kinds {
		if kind.Behind() {
			return watch.Behind(what, kind.Name().String())
		}
	}
	return nil
}

// epoch counts how often the API server's versions had gone back before the cache of an owner was listed.
func (f *Family) epoch(owner inbox.Key) uint64 {
	if h := f.settings.Own.Informer(owner.Namespace); h != nil {
		return h.Epoch()
	}
	return 0
}

// listed returns an error while the caches of owners, or of children of one kind, may be those of before the API server's versions
// went back. An owner of that time wants other children. And a child that is not in the cache may be there: each one would cost
// a creation that meets a conflict, and a read. Kind is nil for a child that is in no cache.
func (f *Family) listed(what string, kind *feed.Feed) error {
	for _, source := range []*feed.Feed{f.settings.Own, kind} {
		if source != nil && source.Behind() {
			return watch.Behind(what, source.Name().String())
		}
	}
	return nil
}

// kind returns the feed of the owned resource that serves this kind, once its objects in the
// namespace can be read.
func (f *Family) kind(kind schema.GroupVersionKind, namespace string) (*feed.Feed, error) {
	for _, each := range f.feeds {
		if !each.Known() || each.Resource().GroupKind() != kind.GroupKind() {
			continue
		}
		if served := each.Resource().GVR.GroupVersion(); served != kind.GroupVersion() {
			return nil, dsl.Permanent(fmt.Errorf("its apiVersion is %s, but children of its kind are watched as %s", kind.GroupVersion(), served))
		}
		return each, each.Readable(namespace)
	}
	for _, each := range f.feeds {
		if now := each.Status(); !each.Known() && each.Name().Group == kind.Group {
			return nil, fmt.Errorf("%s is %s: %s", each.Name(), now.Phase, now.Message)
		}
	}
	return nil, dsl.Permanent(errors.New("no resource of that kind is declared with owns"))
}

// present is kind for what is there already, and may be of a kind that the resource does not own any more.
func (f *Family) present(kind schema.GroupVersionKind, namespace string) (*feed.Feed, error) {
	for each := range f.kinds {
		if each.Resource().GroupKind() == kind.GroupKind() {
			return each, each.Readable(namespace)
		}
	}
	return f.kind(kind, namespace)
}

// Seen takes an event of an object that may be a child: its owner is looked at again. An object that changed owners
// is news for both.
func (f *Family) Seen(kind *feed.Feed, ev watch.Event) {
	defer f.settings.Box.Wake(ev.UID)
	owner := f.ownerKey(kind, ev.Object)
	if owner != nil {
		f.settings.Box.ChildSeen(*owner, ev)
	}
	if before := f.ownerKey(kind, ev.Old); before != nil && (owner == nil || *owner != *before) {
		f.settings.Box.ChildSeen(*before, ev)
	}
}

// ownerKey returns the key of the object of this resource that o is a child of: the one that
// controls it, or, where none does, the one that its owner label and annotation name together. That
// one may have another uid, and be the next object of the owner's name. Where what o says does not
// count by itself, the owner's record must list it: anybody can write the rest, and wake others with it.
func (f *Family) ownerKey(kind *feed.Feed, o *cached.Object) *inbox.Key {
	if o == nil {
		return nil
	}
	name, referred, label := f.keysOf(o).OwnerOf(o, f.settings.Own.Resource().Namespaced)
	if name.Name == "" || name.Kind != f.settings.Own.Resource().GroupKind() {
		return nil
	}
	key := inbox.Key{Namespace: name.Namespace, Name: name.Name}
	if !referred && !f.labels(key, name, label) {
		return nil
	}
	place := ownership.Place{Kind: kind.Resource().GroupKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	if (!referred || !name.Near(place.Namespace)) && !f.lists(key, place) {
		return nil
	}
	return &key
}

// labels reports whether a label is that of the object that has the key now, for another one may have its name, or of
// one of that name whose children are retained.
func (f *Family) labels(key inbox.Key, name ownership.Place, label string) bool {
	if label == name.Retained() {
		return true
	}
	owner, found := f.settings.Own.Get(key)
	return found && string(owner.GetUID()) == label || f.settings.Box.Departs(key, types.UID(label))
}

// Look is how long it is until children that could not be read are looked at again.
func (f *Family) Look() time.Duration {
	for _, kind := range f.feeds {
		if len(kind.Informers("")) > 0 && kind.Readable("") != nil {
			return feed.ListingLook
		}
	}
	return inbox.Patience
}
