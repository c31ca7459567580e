// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// noResync disables the resync of informers, which would come for all objects at once. Owners that look at their objects
// again have timers of their own.
const noResync = time.Duration(0)

// informer wraps an informer of client-go. It runs once.
type informer struct {
	set    *Set
	src    Source
	scope  scope
	log    logr.Logger
	seen   *observer
	shared cache.SharedIndexInformer
	// press compresses the objects. Informers of one resource share it.
	press *cached.Compressor
	// owners is guarded by Set.mu.
	owners int
	stop   context.CancelFunc
	done   chan struct{}
}

func newInformer(set *Set, src Source, press *cached.Compressor) (*informer, error) {
	s := set.settings
	log := s.Log.WithValues("resource", src.GVR.GroupResource().String(), "namespace", src.Namespace)
	in, err := newScope(src)
	if err != nil {
		return nil, err
	}
	form := src.Form
	form.Owner = s.OwnerLabel
	transformer, err := press.NewTransformer(form, src.GVR.GroupVersion(), log)
	if err != nil {
		return nil, err
	}
	i := &informer{set: set, src: src, press: press, scope: in, log: log, done: make(chan struct{})}
	i.seen = &observer{informer: i, health: newHealth(src, log, s.Changed), pace: pace{hurry: make(chan struct{}, 1)}}
	if i.shared, err = i.build(s, transformer); err != nil {
		return nil, err
	}
	if err := i.shared.SetTransform(transformer.Transform); err != nil {
		return nil, err
	}
	return i, i.shared.SetWatchErrorHandlerWithContext(i.failed)
}

func (i *informer) build(s Settings, transformer *cached.Transformer) (cache.SharedIndexInformer, error) {
	indexers := cache.Indexers{byOwner: ownerBuckets}
	switch i.src.Profile {
	case dsl.CacheCompact:
		client := observedClient{s.Dynamic, i.seen}
		if c, can := s.Dynamic.(Cutting); can {
			cutting, err := c.Cutting(transformer.Convert)
			if err != nil {
				return nil, err
			}
			client.Interface = cutting
		}
		return dynamicinformer.NewFilteredDynamicInformer(client, i.src.GVR, i.src.Namespace, noResync, indexers, i.src.selects).Informer(), nil
	case dsl.CacheMetadata, dsl.CacheLive:
		objects := s.Metadata.Resource(i.src.GVR).Namespace(i.src.Namespace)
		options := cache.SharedIndexInformerOptions{ResyncPeriod: noResync, Indexers: indexers}
		return cache.NewSharedIndexInformerWithOptions(observed(i.seen, i.src, s.Metadata, objects), &metav1.PartialObjectMetadata{}, options), nil
	default:
		return nil, fmt.Errorf("unknown cache profile %q", i.src.Profile)
	}
}

// run runs the informer until the context ends and everything it started has stopped.
func (i *informer) run(ctx context.Context) {
	defer close(i.done)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-i.shared.HasSyncedChecker().Done():
			i.seen.health.synced()
		case <-ctx.Done():
		}
	})
	// This package has logged the messages of client-go about its watches already, at the right level.
	i.shared.RunWithContext(klog.NewContext(ctx, i.log.V(1)))
	waiting.Wait()
	i.seen.streams.Wait()
	i.seen.health.end()
}

// version returns the version that the cache has caught up to; empty before the first listing.
func (i *informer) version() string { return i.shared.GetIndexer().LastStoreSyncResourceVersion() }

// object returns the object that the cache has under a key.
func (i *informer) object(key cache.ObjectName) (*cached.Object, bool) {
	item, _, _ := i.shared.GetIndexer().GetByKey(key.String()) // it has no errors to return
	o, found := item.(*cached.Object)
	return o, found
}

// join adds an owner's callback. It gets the objects that are there as initial.
func (i *informer) join(on Handler) (cache.ResourceEventHandlerRegistration, error) {
	log, never := i.log.V(1), noResync
	return i.shared.AddEventHandlerWithOptions(sink{on, i.seen}, cache.HandlerOptions{Logger: &log, ResyncPeriod: &never})
}

// leave removes a callback while other owners stay, and waits until it has returned.
func (i *informer) leave(joined cache.ResourceEventHandlerRegistration) {
	if err := cache.ShutDownEventHandler(i.shared, joined); err != nil {
		i.log.Error(err, "removing callback") // not reached: the registration is this informer's
	}
}

// end stops the informer and waits until it has stopped.
func (i *informer) end() {
	i.stop()
	<-i.done
}

// byOwner is the index of objects by their owners: by the uid of the controller, and by the value of the owner label.
// The index has a map for each of its values, and most owners have one or two objects of a kind. Maps for each owner
// would cost as much as everything else beside the objects' bytes. So the values are hash buckets, and readers filter a
// bucket by the owner.
const byOwner = "owner"

// buckets keeps the objects that a reader filters out at a thousandth of all.
const buckets = 1 << 10

// ownerBuckets indexes an object.
func ownerBuckets(obj any) ([]string, error) {
	o, ok := obj.(*cached.Object)
	if !ok {
		return nil, nil
	}
	var in []string
	if uid := o.Controller(); uid != "" {
		in = append(in, bucketOf(string(uid)))
	}
	if named := o.Owned(); named != "" {
		in = append(in, bucketOf(named))
	}
	return in, nil
}

func bucketOf(owner string) string {
	hash := fnv.New32a()
	hash.Write([]byte(owner))
	n := hash.Sum32() % buckets
	return string([]byte{byte(n >> 8), byte(n)})
}

// ownedBy returns the objects that the owner controls and the objects with its label, in no order.
func ownedBy(index cache.Indexer, owner string) []*cached.Object {
	if owner == "" {
		return nil
	}
	items, err := index.ByIndex(byOwner, bucketOf(owner))
	if err != nil {
		return nil // not reached: the index is there from the start
	}
	var owned []*cached.Object
	for _, item := range items {
		if o, ok := item.(*cached.Object); ok && (string(o.Controller()) == owner || o.Owned() == owner) {
			owned = append(owned, o)
		}
	}
	return owned
}
