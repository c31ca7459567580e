// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
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
	panic("stages: no row for " + name) // not reached: the names are constants
}

func (l *loop) reach(k kind, namespace string) dynamic.ResourceInterface {
	return l.client.Resource(k.resource).Namespace(namespace)
}

// create creates an object.
func (l *loop) create(row string, o object, manager string) error {
	k := l.row(row)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	delete(tree, "status")
	u := &unstructured.Unstructured{Object: tree}
	u.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	out, err := l.reach(k, o.GetNamespace()).Create(l.ctx, u, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return err
	}
	l.seen(k, out)
	return nil
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
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	out, err := l.reach(k, o.GetNamespace()).Patch(l.ctx, o.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager}, subresource...)
	if err != nil {
		return err
	}
	l.seen(k, out)
	return nil
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
	out := map[string]any{}
	return out, json.Unmarshal(data, &out)
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
	err := l.reach(k, o.GetNamespace()).Delete(l.ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: grace, PropagationPolicy: &background,
	})
	if err == nil && o.GetDeletionTimestamp() == nil {
		l.caches[row].mark(o)
	}
	return err
}
