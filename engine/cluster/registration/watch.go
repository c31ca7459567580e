// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// place is the scope of a watch: the objects of a resource with the keeper's labels, or one object by its name.
type place struct {
	gvr  schema.GroupVersionResource
	name string
}

// watch is a cache of the objects of a place.
type watch struct {
	informer cache.SharedIndexInformer

	mu  sync.Mutex
	err error
}

// watch returns the watch of a place, and begins it if there is none. It ends with ctx.
func (k *Keeper) watch(ctx context.Context, at place) *watch {
	if w := k.watches[at]; w != nil {
		return w
	}
	w := &watch{}
	w.informer = dynamicinformer.NewFilteredDynamicInformer(k.set.Client, at.gvr, metav1.NamespaceAll, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		if o.LabelSelector = k.selector(); at.name != "" {
			o.LabelSelector, o.FieldSelector = "", "metadata.name="+at.name
		}
	}).Informer()
	// Both return an error only for an informer that runs.
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.note(err)
		signal(k.wake)
	})
	wake := func() { w.note(nil); signal(k.wake) }
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	})
	k.watching.Go(func() { w.informer.RunWithContext(ctx) })
	k.watching.Go(func() {
		if cache.WaitFor(ctx, "", w.informer.HasSyncedChecker()) {
			signal(k.wake)
		}
	})
	k.watches[at] = w
	return w
}

// selector is the label selector of the keeper's objects.
func (k *Keeper) selector() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(k.set.Labels)) {
		values := append([]string{k.set.Labels[key]}, k.set.Earlier[key]...)
		out = append(out, key+" in ("+strings.Join(values, ",")+")")
	}
	return strings.Join(out, ",")
}

func (w *watch) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// failure returns an error until the cache has all objects. Later failures of the watch are retried, and the content of the cache
// still counts.
func (w *watch) failure() error {
	if w.informer.HasSynced() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return errPending
}

// get returns an object; nil if the cache has none of that name.
func (w *watch) get(name string) *unstructured.Unstructured {
	item, found, err := w.informer.GetStore().GetByKey(name)
	if o, is := item.(*unstructured.Unstructured); is && found && err == nil {
		return o
	}
	return nil
}

// list returns all objects.
func (w *watch) list() (out []*unstructured.Unstructured) {
	for _, item := range w.informer.GetStore().List() {
		if o, is := item.(*unstructured.Unstructured); is {
			out = append(out, o)
		}
	}
	return out
}
