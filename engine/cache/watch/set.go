// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch keeps caches of Kubernetes objects: one informer per [Source], for any resource, started and stopped while the
// process runs.
//
// A [Set] shares informers between owners. [Set.Open] makes its caller an owner of a source: the first owner starts the informer,
// the last one to close its [Handle] stops it. Owners get events through one callback each and read the cache through their
// handle; the informer itself never leaves the package.
//
// Package cached defines the objects in the caches, and how much of each is held.
//
// A fault of a source stays with it: it shows in its [State] and is tried again until it works, after 20 s at most, or when
// [Handle.Retry] says so.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// Settings configure a set.
type Settings struct {
	// Dynamic serves the compact profile; it may be a [Cutting]. Required.
	Dynamic dynamic.Interface
	// Metadata serves the profiles metadata and live. Required. It gets protobuf, in which there is no JSON to scan.
	Metadata metadata.Interface
	// OwnerLabel is the key of the label by which objects name an owner that does not control them;
	// see [Handle.OwnedBy]. Optional.
	OwnerLabel string
	// Log gets each fault once, and its end once; retries at V(1). Optional.
	Log logr.Logger
	// Changed is called when a source has synced for the first time, and when a fault appears,
	// changes or disappears. For one source the calls come one by one, the last one with the
	// last state, and none after its last handle was closed. The source has its defaults filled
	// in, as [Handle.Source] has. It must be quick and must not call Close. Optional.
	Changed func(Source, State)
	// Outages knows the rejections of a server that has just come back. After such a rejection a watch resumes where it
	// was. Optional.
	Outages *transport.Outages
	// Listener is called when versions go back. Optional.
	Listener Listener
}

// Cutting is a client whose lists and watches can return objects as a cache holds them. Package cached/wire has one.
type Cutting interface {
	Cutting(cut func(json []byte) *cached.Object) (dynamic.Interface, error)
}

// Listener is informed of events that concern all sources of a set. Its methods must be quick.
type Listener interface {
	// VersionsWentBack is called when the API server's versions have gone back, as after a restored backup: versions that
	// were read before are void, and all sources list again.
	VersionsWentBack()
}

// Set holds the informers of a process.
type Set struct {
	settings Settings
	running  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	informers map[Source]*informer
	// places has the same informers, by the resource and namespace that they show.
	places map[place][]*informer
	alarms
}

// place is a resource in a namespace, or in all when it is empty.
type place struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// New returns an empty set.
func New(s Settings) *Set {
	return &Set{settings: s, informers: map[Source]*informer{}, places: map[place][]*informer{}}
}

// Open makes the caller an owner of the source. The first owner starts the informer; later ones
// get what it holds as initial events.
//
// The handler gets the events of all objects of the source one by one, in order for each object.
// It must be quick, as events wait in memory without a limit; it may read handles and open
// sources, but must not close any.
//
// The values of ctx, but not its end, are passed on to the requests: the informer lives until its
// last handle is closed. Open itself sends no request. It fails when a selector, profile or path of
// the source is faulty and when the set is closed.
func (s *Set) Open(ctx context.Context, src Source, on Handler) (*Handle, error) {
	src.Form = src.WithDefaults()
	i, err := s.acquire(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", src, err)
	}
	joined, err := i.join(on)
	if err != nil {
		s.release(i)
		return nil, fmt.Errorf("opening %s: %w", src, err)
	}
	return &Handle{set: s, informer: i, joined: joined, closed: make(chan struct{})}, nil
}

// Close stops all informers and waits until they have stopped. No callback runs after it. Open
// handles can be read and closed still.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	if s.next != nil {
		s.next.Stop()
	}
	stopping := slices.Collect(maps.Values(s.informers))
	s.mu.Unlock()
	for _, i := range stopping {
		i.stop()
	}
	s.running.Wait()
}

// acquire adds an owner to the source's informer, which it starts if need be.
func (s *Set) acquire(ctx context.Context, src Source) (*informer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the set is closed")
	}
	i, found := s.informers[src]
	if !found {
		var err error
		if i, err = newInformer(s, src, s.pressLocked(src)); err != nil {
			return nil, err
		}
		run, stop := context.WithCancel(context.WithoutCancel(ctx))
		i.stop = stop
		i.seen.era.wanted = s.epoch
		s.informers[src] = i
		at := place{src.GVR, src.Namespace}
		s.places[at] = append(s.places[at], i)
		s.running.Go(func() { i.run(run) })
	}
	i.owners++
	return i, nil
}

// pressLocked returns the compressor for the objects of a source. Sources of one resource in the same form share it, for
// example in two namespaces.
func (s *Set) pressLocked(src Source) *cached.Compressor {
	for other, i := range s.informers {
		if other.GVR == src.GVR && other.Form == src.Form {
			return i.press
		}
	}
	return &cached.Compressor{}
}

// release removes an owner, and reports whether it was the last one. The informer has left the set then, and the caller
// has to end it.
func (s *Set) release(i *informer) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.owners--
	if i.owners == 0 {
		delete(s.informers, i.src)
		at := place{i.src.GVR, i.src.Namespace}
		if s.places[at] = slices.DeleteFunc(s.places[at], func(other *informer) bool { return other == i }); len(s.places[at]) == 0 {
			delete(s.places, at)
		}
	}
	return i.owners == 0
}
