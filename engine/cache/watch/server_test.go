// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

var foos = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}

// streaming is a client like a real one: it does not say that it cannot stream lists.
type streaming struct{ dynamic.Interface }

// server is an API server with one resource. It has no namespaces: all that matters of them is
// what it was asked for.
type server struct {
	dynamic  *dynamicfake.FakeDynamicClient
	metadata *metadatafake.FakeMetadataClient

	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	streams []*served
	// lists and watches are the requests so far.
	lists, watches []metav1.ListOptions
	// proofs counts the questions for the newest version.
	proofs int
	// slow is how long their answers take.
	slow time.Duration
	// listing and watching, when set, are what requests fail with.
	listing, watching error
	// stalled: a streamed list does not come to its end.
	stalled bool
}

// served is one watch request that is being answered.
type served struct {
	*apiwatch.RaceFreeFakeWatcher
	partial bool
}

func newServer() *server {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	s := &server{
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{foos: "FooList"}),
		metadata: metadatafake.NewSimpleMetadataClient(scheme),
		version:  100,
		objects:  map[string]*unstructured.Unstructured{},
	}
	s.dynamic.PrependReactor("list", "foos", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return s.list(a, false)
	})
	s.metadata.PrependReactor("list", "foos", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return s.list(a, true)
	})
	s.dynamic.PrependWatchReactor("foos", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		return s.watch(a, false)
	})
	s.metadata.PrependWatchReactor("foos", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		return s.watch(a, true)
	})
	return s
}

func (s *server) list(a clienttesting.Action, partial bool) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = append(s.lists, a.(clienttesting.ListActionImpl).ListOptions)
	if s.listing != nil {
		return true, nil, s.listing
	}
	version := strconv.Itoa(s.version)
	if partial {
		list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		for _, u := range s.objects {
			list.Items = append(list.Items, runtime.RawExtension{Object: as(u, true)})
		}
		return true, list, nil
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "FooList"}}
	list.SetResourceVersion(version)
	for _, u := range s.objects {
		list.Items = append(list.Items, *u.DeepCopy())
	}
	return true, list, nil
}

func (s *server) watch(a clienttesting.Action, partial bool) (bool, apiwatch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	opts := a.(clienttesting.WatchActionImpl).ListOptions
	s.watches = append(s.watches, opts)
	if s.watching != nil {
		return true, nil, s.watching
	}
	w := &served{apiwatch.NewRaceFreeFake(), partial}
	s.streams = append(s.streams, w)
	if opts.SendInitialEvents != nil {
		for _, u := range s.objects {
			w.Add(as(u, partial))
		}
		if !s.stalled {
			w.Action(apiwatch.Bookmark, s.bookmark("true"))
		}
	}
	return true, w, nil
}

func (s *server) bookmark(initial string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo"}}
	u.SetResourceVersion(strconv.Itoa(s.version))
	u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: initial})
	return u
}

// put creates or updates an object: its uid decides. The object gets the next version.
func (s *server) put(name, uid string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo"}}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID(types.UID(uid))
	for _, c := range change {
		c(u)
	}
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
	kind := apiwatch.Modified
	if old, found := s.objects[name]; !found || old.GetUID() != u.GetUID() {
		kind = apiwatch.Added
	}
	s.objects[name] = u
	s.send(kind, u)
	return u
}

// drop deletes an object.
func (s *server) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	u := s.objects[name].DeepCopy()
	u.SetResourceVersion(strconv.Itoa(s.version))
	delete(s.objects, name)
	s.send(apiwatch.Deleted, u)
}

func (s *server) send(kind apiwatch.EventType, u *unstructured.Unstructured) {
	for _, w := range s.streams {
		w.Action(kind, as(u, w.partial))
	}
}

// cut ends all streams with an error; nil means politely.
func (s *server) cut(err apierrors.APIStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.streams {
		if err != nil {
			status := err.Status()
			w.Error(&status)
		}
		w.Stop()
	}
	s.streams = nil
}

// gap lets things happen that no stream sees. The informers list again afterwards.
func (s *server) gap(unseen func()) {
	s.mu.Lock()
	streams := s.streams
	s.streams = nil
	s.mu.Unlock()
	unseen()
	s.mu.Lock()
	s.streams = streams
	s.mu.Unlock()
	s.cut(apierrors.NewResourceExpired("too old"))
	advance(time.Minute)
}

// answer is what reads of one object are answered with from here on.
func (s *server) answer(o *unstructured.Unstructured) {
	s.dynamic.PrependReactor("get", "foos", func(clienttesting.Action) (bool, runtime.Object, error) { return true, o, nil })
}

// set changes what requests fail with.
func (s *server) set(listing, watching error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing, s.watching = listing, watching
}

// stalls makes streamed lists not come to their end, or come there again.
func (s *server) stalls(stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = stalled
}

// counts returns the number of list and watch requests and of the streams that are open.
func (s *server) counts() (lists, watches, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.streams {
		if !w.IsStopped() {
			open++
		}
	}
	return len(s.lists), len(s.watches), open
}

// as is the object as a client gets it: whole, or its metadata as a server sends it alone.
func as(u *unstructured.Unstructured, partial bool) runtime.Object {
	if !partial || u.GetName() == "" {
		return u.DeepCopy()
	}
	var p metav1.PartialObjectMetadata
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, &p); err != nil {
		panic(err)
	}
	p.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	return &p
}

// journal is an owner's callback that remembers.
type journal struct {
	mu     sync.Mutex
	events []Event
}

func (j *journal) OnEvent(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// take returns the events since the last call as text, initial ones sorted.
func (j *journal) take() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	initial := 0
	for _, e := range j.events {
		text := fmt.Sprintf("%s %s %s", e.Kind, e.Key, e.UID)
		if e.Initial {
			text += " initial"
			initial++
		}
		out = append(out, text)
	}
	slices.Sort(out[:initial])
	j.events = nil
	return out
}

// log is a logger that remembers.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: 1})
}

func (l *log) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func (s *server) settings() Settings {
	return Settings{Dynamic: s.dynamic, Metadata: proving{s.metadata, s}}
}

// proving is a client of metadata that answers questions for the newest version, which the fake cannot distinguish from listings.
type proving struct {
	metadata.Interface
	server *server
}

func (p proving) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return provingResource{p.Interface.Resource(gvr), p.server}
}

func (p proving) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(p.Interface)
}

type provingResource struct {
	metadata.Getter
	server *server
}

func (p provingResource) Namespace(namespace string) metadata.ResourceInterface {
	return provingObjects{p.Getter.Namespace(namespace), p.server}
}

type provingObjects struct {
	metadata.ResourceInterface
	server *server
}

func (p provingObjects) List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if opts.Limit != 1 {
		return p.ResourceInterface.List(ctx, opts)
	}
	p.server.mu.Lock()
	p.server.proofs++
	version, slow, err := strconv.Itoa(p.server.version), p.server.slow, p.server.listing
	p.server.mu.Unlock()
	<-time.After(slow)
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, err
}

// asked returns how often the server was asked for its newest version.
func (s *server) asked() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proofs
}

// advance lets time pass.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func mustOpen(t testing.TB, set *Set, src Source, on Handler) *Handle {
	t.Helper()
	h, err := set.Open(t.Context(), src, on)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// handle is a function as a handler.
type handle func(Event)

func (h handle) OnEvent(ev Event) { h(ev) }

var ignore = handle(func(Event) {})

func key(name string) cache.ObjectName { return cache.NewObjectName("default", name) }
