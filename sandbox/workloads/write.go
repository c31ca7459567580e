// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"encoding/json"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// The field managers are those of a cluster's own components.
const (
	controllers = "kube-controller-manager"
	kubelet     = "kubelet"
)

// row returns a row of the table.
func (l *loop) row(name string) kind {
	for _, k := range l.kinds {
		if k.name == name {
			return k
		}
	}
	panic("workloads: no row for " + name) // not reached: the names are constants
}

// create creates an object, and gives it the name and the uid that it gets.
func (l *loop) create(row string, o object, manager string) error {
	k := l.row(row)
	o.GetObjectKind().SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	data, err := l.link.create(l.ctx, k.path(o.GetNamespace(), ""), manager, o)
	if err != nil {
		return err
	}
	if id, err := identityOf(data); err == nil {
		o.SetName(id.Name)
		o.SetUID(id.UID)
	}
	return l.wrote(k, data)
}

// wrote takes in the answer to an own write.
func (l *loop) wrote(k kind, data []byte) error {
	o, err := identityOf(data)
	if l.moved = true; err == nil {
		l.seen(k, o, data)
	}
	return err
}

// patch sends a merge patch for an object, or for a subresource of it.
func (l *loop) patch(row string, o object, manager string, change map[string]any, subresource ...string) error {
	k := l.row(row)
	meta, _ := change["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["uid"], meta["resourceVersion"] = o.GetUID(), o.GetResourceVersion()
	change["metadata"] = meta
	data, err := l.link.merge(l.ctx, k.path(o.GetNamespace(), o.GetName(), subresource...), manager, change)
	if err != nil {
		return err
	}
	return l.wrote(k, data)
}

// status writes the status of an object unless it is as it was. The statuses are structs of one type.
func (l *loop) status(row string, o object, manager string, old, next any) error {
	if equality.Semantic.DeepEqual(old, next) {
		return nil
	}
	before, err := treeOf(old)
	if err != nil {
		return err
	}
	after, err := treeOf(next)
	if err != nil {
		return err
	}
	if reflect.ValueOf(old).IsZero() {
		before = nil // the first status has its zeros, too
	}
	return l.patch(row, o, manager, map[string]any{"status": difference(before, after)}, "status")
}

// treeOf returns a status as a tree.
func treeOf(status any) (map[string]any, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return scan.Tree(data), nil
}

// difference returns the merge patch from one tree to another.
func difference(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for name := range from {
		if _, kept := to[name]; !kept {
			out[name] = nil
		}
	}
	for name, value := range to {
		was, isMap := from[name].(map[string]any)
		is, stays := value.(map[string]any)
		switch {
		case reflect.DeepEqual(from[name], value):
		case isMap && stays:
			out[name] = difference(was, is)
		default:
			out[name] = value
		}
	}
	return out
}

// delete deletes an object. The cache shows it as one that is being deleted at once.
func (l *loop) delete(row string, o object, grace *int64) error {
	k, uid := l.row(row), o.GetUID()
	background := metav1.DeletePropagationBackground
	err := l.link.delete(l.ctx, k.path(o.GetNamespace(), o.GetName()), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: grace, PropagationPolicy: &background,
	})
	if err != nil {
		return err
	}
	l.moved = true
	if o.GetDeletionTimestamp() == nil {
		l.caches[row].mark(o, l.now())
	}
	l.shown(row, o)
	return nil
}
