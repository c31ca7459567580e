// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Compare wraps a client of a resource, in a namespace unless that is empty. It compares the server's answers with the
// caches as they were before the request. An older version means that the API server's versions have gone back. Then all
// sources list again, and a read fails with a [RollbackError]: a result from two states of the server fits neither. A write
// was done, so its answer is returned as it is.
func (s *Set) Compare(gvr schema.GroupVersionResource, namespace string, c dynamic.ResourceInterface) dynamic.ResourceInterface {
	return comparing{c, s, gvr, namespace}
}

// comparing is the client that Compare returns.
type comparing struct {
	dynamic.ResourceInterface
	set       *Set
	gvr       schema.GroupVersionResource
	namespace string
}

// Get implements [dynamic.ResourceInterface], as do the other methods.
func (c comparing) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	before := c.known(name, sub)
	o, err := c.ResourceInterface.Get(ctx, name, options, sub...)
	if err != nil {
		return o, err
	}
	if err := before.compare(o, false); err != nil {
		return nil, err
	}
	return o, nil
}

func (c comparing) Create(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	before := c.known(object.GetName(), sub)
	o, err := c.ResourceInterface.Create(ctx, object, options, sub...)
	return o, before.wrote(o, err)
}

func (c comparing) Update(ctx context.Context, object *unstructured.Unstructured, options metav1.UpdateOptions, sub ...string) (*unstructured.Unstructured, error) {
	before := c.known(object.GetName(), sub)
	o, err := c.ResourceInterface.Update(ctx, object, options, sub...)
	return o, before.wrote(o, err)
}

func (c comparing) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	before := c.known(name, sub)
	o, err := c.ResourceInterface.Patch(ctx, name, kind, data, options, sub...)
	return o, before.wrote(o, err)
}

func (c comparing) Apply(ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	before := c.known(name, sub)
	o, err := c.ResourceInterface.Apply(ctx, name, object, options, sub...)
	return o, before.wrote(o, err)
}

// known returns the state of an object in the caches.
func (c comparing) known(name string, sub []string) known {
	if len(sub) > 0 && sub[0] != "status" || name == "" {
		return nil // the answer may be of another kind
	}
	key := cache.ObjectName{Namespace: c.namespace, Name: name}
	var out known
	for _, i := range c.set.showing(c.gvr, c.namespace) {
		// The order counts: the cache has the object as it is at this version, or later.
		at := i.version()
		had, _ := i.object(key)
		sight := sight{set: c.set, informer: i, key: key, at: at}
		if had != nil {
			sight.uid, sight.version = had.GetUID(), had.GetResourceVersion()
		}
		out = append(out, sight)
	}
	return out
}

// showing returns the informers of a resource that may show objects of a namespace.
func (s *Set) showing(gvr schema.GroupVersionResource, namespace string) (out []*informer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out = append(out, s.places[place{gvr, ""}]...)
	if namespace != "" {
		out = append(out, s.places[place{gvr, namespace}]...)
	}
	return out
}

// known is the state of an object in the caches before a request.
type known []sight

// sight is the state of an object in one cache.
type sight struct {
	set      *Set
	informer *informer
	key      cache.ObjectName
	// at is the version that the cache had caught up to. Uid and version are the object's; empty if there was none.
	at      string
	uid     types.UID
	version string
}

// compare returns an error if an answer shows that versions have gone back. Written is true for the answer to a write.
func (k known) compare(live *unstructured.Unstructured, written bool) (err error) {
	for _, s := range k {
		had, is := s.newer(live, written)
		if !is {
			continue
		}
		what := named{s.informer.src, s.key}
		s.set.wentBack(s.informer.seen, false, what, had, live.GetResourceVersion())
		err = &RollbackError{what: what.String(), cached: had, live: live.GetResourceVersion()}
	}
	return err
}

// wrote is compare for the answer to a write. It returns the error of the write.
func (k known) wrote(o *unstructured.Unstructured, err error) error {
	if err == nil {
		_ = k.compare(o, true) // the write was done
	}
	return err
}

// newer reports whether the cache had a newer state than the server returned, and returns the cache's version. If the
// object's version is not past that of the cache, the cache must have the object with that version. An object that the
// cache lacks counts only after a write: a listing may lack it for another reason.
func (s sight) newer(live *unstructured.Unstructured, written bool) (had string, is bool) {
	version, same := live.GetResourceVersion(), s.uid == live.GetUID()
	if same && older(version, s.version) {
		return s.version, true
	}
	order, err := resourceversion.CompareResourceVersion(version, s.at)
	if err != nil || order > 0 || !s.informer.scope.selects(s.key, live.GetLabels()) {
		return "", false
	}
	return s.at, same && s.version != version || !same && written
}
