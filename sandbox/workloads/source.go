// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bufio"
	"context"
	"io"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// pause is the time between two tries to reach the server, by the clock of the machine.
const pause = time.Second

// follow keeps the cache of a kind current by a watch, from a version on, until the context ends.
func (l *loop) follow(ctx context.Context, k kind, events io.ReadCloser, version string) {
	for ctx.Err() == nil {
		version = l.watch(k, events, version)
		events, version = l.open(ctx, k, version)
	}
}

// open brings in all objects of a kind, unless their version is known, and returns a watch from their version on. It tries
// until it has one; after the end of the context it has none.
func (l *loop) open(ctx context.Context, k kind, version string) (io.ReadCloser, string) {
	for ctx.Err() == nil {
		var err error
		if version == "" {
			version, err = l.list(ctx, k)
		}
		if err == nil {
			events, err := l.link.watch(ctx, k, version)
			if err == nil {
				return events, version
			}
		}
		version = ""
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil, ""
}

// list brings in all objects of a kind and returns the version of the list.
func (l *loop) list(ctx context.Context, k kind) (string, error) {
	items, version, err := l.link.list(ctx, k, "")
	if err != nil {
		return "", err
	}
	gone := l.caches[k.name].keys()
	for _, data := range items {
		if o, err := identityOf(data); err == nil {
			delete(gone, keyOf(o))
			l.seen(k, o, data)
		}
	}
	for name, uid := range gone {
		l.lost(k, name, uid)
	}
	l.versions.reach(k.name, version)
	return version, nil
}

// watch takes in changes of a kind until the watch ends, and returns the version from which to watch again; none if the
// kind has to be listed.
func (l *loop) watch(k kind, events io.ReadCloser, version string) string {
	defer events.Close()
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return version
		}
		what, data := eventOf(line)
		if data == nil {
			return ""
		}
		o := identity(data)
		switch watch.EventType(what) {
		case watch.Added, watch.Modified:
			l.seen(k, o, data)
		case watch.Deleted:
			l.lost(k, keyOf(o), o.UID)
		default:
			return ""
		}
		version = o.ResourceVersion
		l.versions.reach(k.name, version)
	}
}

// seen takes an object into its cache, and queues it and what depends on it.
func (l *loop) seen(k kind, id *metav1.ObjectMeta, data []byte) {
	if l.caches[k.name].knows(id) {
		return
	}
	o, err := k.decode(data)
	if err != nil {
		return // it is not of the kind's form, so no controller could read it
	}
	if old, is := l.caches[k.name].get(o.GetNamespace(), o.GetName()).(*corev1.Pod); is && !maps.Equal(old.Labels, o.GetLabels()) {
		l.wakeServices(old)
	}
	l.caches[k.name].put(o)
	l.wake(k, o)
}

// lost removes an object from its cache, and queues what depends on it.
func (l *loop) lost(k kind, name types.NamespacedName, uid types.UID) {
	if o := l.caches[k.name].drop(name, uid); o != nil {
		l.wake(k, o)
	}
}

// wake queues an object that has changed, its controller, and others that look at it.
func (l *loop) wake(k kind, o object) {
	l.queue.add(key{k.name, o.GetNamespace(), o.GetName()})
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil && l.caches[ref.Kind] != nil {
		l.queue.add(key{ref.Kind, o.GetNamespace(), ref.Name})
	}
	switch o := o.(type) {
	case *corev1.Node:
		l.wakeAll("DaemonSet", l.caches["DaemonSet"].all())
		for _, p := range listOf[*corev1.Pod](l.caches["Pod"].all()) {
			if p.Spec.NodeName == "" { // it may fit now
				l.queue.add(key{"Pod", p.Namespace, p.Name})
			}
		}
	case *corev1.Pod:
		l.wakeAll("PodDisruptionBudget", l.caches["PodDisruptionBudget"].in(o.Namespace))
		l.wakeServices(o)
		l.wakeEnding(o)
	case *endpoints:
		l.queue.add(key{"Service", o.Namespace, o.Name})
	case *corev1.PersistentVolumeClaim:
		l.queue.add(key{kind: "PersistentVolume", name: o.Spec.VolumeName})
		l.wakeClass(o.Spec.VolumeAttributesClassName)
	case *corev1.PersistentVolume:
		l.wakeClass(o.Spec.VolumeAttributesClassName)
		if ref := o.Spec.ClaimRef; ref != nil {
			l.queue.add(key{"PersistentVolumeClaim", ref.Namespace, ref.Name})
		}
	}
}

// wakeServices queues the Services of a Pod.
func (l *loop) wakeServices(p *corev1.Pod) {
	if !l.allKinds {
		return
	}
	for _, s := range listOf[*corev1.Service](l.caches["Service"].in(p.Namespace)) {
		if serves(s, p) {
			l.queue.add(key{"Service", s.Namespace, s.Name})
		}
	}
}

func (l *loop) wakeAll(row string, list []object) {
	for _, o := range list {
		l.queue.add(key{row, o.GetNamespace(), o.GetName()})
	}
}
